import Foundation

/// A warning as it stands at one place.
package struct AlertEvent: Sendable, Equatable {
    package enum State: Sendable, Equatable { case standing, cancelled }

    /// Identifiers of all its messages that are known, those that are only referred to too, ascending.
    package var messages: [String]
    package var state: State
    /// What its newest message says of the place, in one language: of each hazard and time. Empty: it is cancelled, lies elsewhere by now,
    /// or only what refers to it is known.
    package var infos: [AlertInfo]
}

/// The messages that are known of a place, and which of them are one event.
///
/// References join messages, in whatever order they come. An update takes the place of what it refers to, a cancellation ends it:
/// what was cancelled did not expire.
package struct AlertBook: Sendable, Equatable {
    private(set) package var messages: [AlertMessage]

    package init(_ messages: [AlertMessage] = []) {
        self.messages = []
        for message in messages { note(message) }
    }

    /// The same one again changes nothing; sent anew under its identifier, the later one counts.
    package mutating func note(_ message: AlertMessage) {
        if let index = messages.firstIndex(where: { $0.identifier == message.identifier }) {
            if messages[index].sent < message.sent { messages[index] = message }
        } else {
            messages.append(message)
        }
    }

    /// A service that lists what stands does not say what it has taken back: what it no longer lists, and is not over, was cancelled. What it
    /// lists again stands again.
    ///
    /// - Parameters:
    ///   - current: all that it lists now.
    ///   - before: what it listed before.
    package mutating func noteMissing(from current: [AlertMessage], _ before: [AlertMessage], now: Date) {
        let listed = Set(current.map(\.identifier))
        messages.removeAll { message in message.identifier.hasSuffix(Self.gone) && !listed.isDisjoint(with: message.references) }
        for event in events(at: nil, language: nil) where event.state == .standing && listed.isDisjoint(with: event.messages) {
            for message in before
            where event.messages.contains(message.identifier) && message.infos.contains(where: { $0.until > now }) {
                note(
                    AlertMessage(
                        identifier: message.identifier + Self.gone, sent: now, kind: .cancel, references: [message.identifier]))
            }
        }
    }

    /// Ends the identifier of a cancellation that nobody sent.
    private static let gone = " gone"

    /// Leaves out events that are not about a place: of a whole country's warnings a book holds few.
    ///
    /// - Parameter isAsked: the service was asked for this place: what draws no area is meant. Of a feed's, such a message counts with one
    ///   of its event that is drawn round the place.
    package mutating func keep(at place: Coordinates, isAsked: Bool) {
        let kept = groups().filter { group in
            messages.contains { message in
                group.contains(message.identifier) && message.infos.contains { $0.contains(place) ?? isAsked }
            }
        }
        let names = Set(kept.flatMap { $0 })
        messages.removeAll { !names.contains($0.identifier) }
    }

    /// Forgets what has been over for long: a late cancellation would find nothing to end.
    package mutating func prune(before date: Date) {
        let over = events(at: nil, language: nil).filter { event in
            event.messages.allSatisfy { name in
                messages.first { $0.identifier == name }.map { message in
                    message.sent < date && message.infos.allSatisfy { $0.until < date }
                } ?? true
            }
        }
        let gone = Set(over.flatMap(\.messages))
        messages.removeAll { gone.contains($0.identifier) }
    }

    /// The events at a place.
    ///
    /// - Parameters:
    ///   - place: `nil`: of everywhere. Of a message that draws no area it is known that it is meant, as its service was asked for this
    ///     place.
    ///   - language: of the reader, "en": a message in it counts before the others of its kind.
    package func events(at place: Coordinates?, language: String?) -> [AlertEvent] {
        groups().map { group in
            let known = messages.filter { group.contains($0.identifier) }.sorted {
                ($0.sent, $0.identifier) < ($1.sent, $1.identifier)
            }
            let replaced = Set(known.filter { $0.kind == .update }.flatMap(\.references))
            let cancellations = known.filter { $0.kind == .cancel && $0.isMeant(at: place) }
            let cancelled = Set(cancellations.flatMap(\.references) + cancellations.map(\.identifier))
            // What is left of the event: neither replaced, nor cancelled, nor a cancellation.
            let left = known.filter {
                $0.kind != .cancel && !replaced.contains($0.identifier) && !cancelled.contains($0.identifier)
            }
            // Of a warning that was split every part stands, until it is itself replaced or ended.
            let updates = left.filter { $0.kind == .update }
            let standing = left.filter { message in
                !(updates + cancellations).contains { Self.means($0, also: message, in: known) }
            }
            let isCancelled = standing.isEmpty && !cancellations.isEmpty
            let infos = standing.flatMap { $0.infos(at: place, language: language) }
            return AlertEvent(messages: group.sorted(), state: isCancelled ? .cancelled : .standing, infos: infos)
        }
    }

    /// Seconds within which the parts of a warning that is split are sent.
    private static let splitTime: TimeInterval = 120

    /// Whether a later message that names an early one of a chain means what has followed on that one, too: it names nothing beside the
    /// chain, as the message on a part would, and was not sent together with what has followed.
    private static func means(_ later: AlertMessage, also message: AlertMessage, in known: [AlertMessage]) -> Bool {
        guard later.identifier != message.identifier, !later.references.isEmpty,
            later.sent.timeIntervalSince(message.sent) > splitTime
        else { return false }
        var (chain, open) = (Set<String>(), message.references)
        while let name = open.popLast() {
            guard chain.insert(name).inserted else { continue }
            open += known.first { $0.identifier == name }?.references ?? []
        }
        return chain.isSuperset(of: later.references)
    }

    /// Identifiers that belong together, by references, directly or over others.
    private func groups() -> [Set<String>] {
        var group: [String: Int] = [:]
        var groups: [Int: Set<String>] = [:]
        for (number, message) in messages.enumerated() {
            var members = Set([message.identifier] + message.references)
            for other in Set(members.compactMap { group[$0] }) { members.formUnion(groups.removeValue(forKey: other) ?? []) }
            for name in members { group[name] = number }
            groups[number] = members
        }
        return groups.sorted { $0.key < $1.key }.map(\.value)
    }
}

extension AlertMessage {
    /// It names areas by code alone, which nobody can place.
    package var isCodedOnly: Bool { !infos.isEmpty && infos.allSatisfy { !$0.areas.contains(where: \.isDrawn) } }

    /// Whether it is about a place: one without any drawn area is, as its service was asked for that place.
    fileprivate func isMeant(at place: Coordinates?) -> Bool {
        guard let place else { return true }
        let answers = infos.map { $0.contains(place) }
        return answers.allSatisfy { $0 == nil } || answers.contains(true)
    }

    /// What it says of a place, in the language if it can.
    fileprivate func infos(at place: Coordinates?, language: String?) -> [AlertInfo] {
        let meant = infos.filter { info in place.map { info.contains($0) ?? true } ?? true }
        func spoken(_ wanted: String?) -> [AlertInfo] {
            guard let wanted = wanted?.lowercased() else { return [] }
            return meant.filter { $0.language?.lowercased().hasPrefix(wanted) == true }
        }
        return [spoken(language), spoken("en"), meant.filter { $0.language == meant.first?.language }].first { !$0.isEmpty } ?? []
    }
}
