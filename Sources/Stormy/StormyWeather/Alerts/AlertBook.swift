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

    package init(messages: [String], state: State, infos: [AlertInfo]) {
        (self.messages, self.state, self.infos) = (messages, state, infos)
    }
}

/// The messages that are known of a place, and which of them are one event.
///
/// References join messages, in whatever order they come. An update takes the place of what it refers to, a cancellation ends it:
/// what was cancelled did not expire.
package struct AlertBook: Sendable, Equatable {
    private(set) package var messages: [AlertMessage]

    package init(_ messages: [AlertMessage] = []) {
        self.messages = []
        let links = Set(messages.map(\.link))
        for message in messages { insert(message, listedAt: links, keepsUnlisted: true, now: .distantFuture) }
    }

    package mutating func note(_ message: AlertMessage) { note([message]) }

    /// Takes the messages that are listed now. A message that is sent again under its identifier counts as it was sent last. Documents
    /// that are listed together all count, also if their identifier is the same. The content of a document replaces the earlier content,
    /// also if the identifiers differ.
    ///
    /// - Parameters:
    ///   - keepsUnlisted: `false` if a document that is not listed is over.
    ///   - now: a stored message from the future had a wrong clock, and does not count as newer.
    package mutating func note(_ listed: [AlertMessage], keepsUnlisted: Bool = true, now: Date = .distantFuture) {
        let listed = Self.joined(listed)
        let links = Dictionary(grouping: listed, by: \.identifier).mapValues { Set($0.map(\.link)) }
        for message in listed {
            insert(message, listedAt: links[message.identifier] ?? [], keepsUnlisted: keepsUnlisted, now: now)
            guard let link = message.link else { continue }
            for index in messages.indices where messages[index].link == link && messages[index].identifier != message.identifier {
                messages[index].replacedBy = message.identifier
            }
        }
    }

    /// Joins warnings of one list that have the same identifier and no address. The message has the parts of both.
    private static func joined(_ listed: [AlertMessage]) -> [AlertMessage] {
        var (joined, known): ([AlertMessage], [[String?]: Int]) = ([], [:])
        for message in listed {
            let key = [message.identifier, message.link]
            guard message.kind == .alert, let index = known[key] else {
                if message.kind == .alert { known[key] = joined.count }
                joined.append(message)
                continue
            }
            var (newer, older) = (message, joined[index])
            if older.sent > newer.sent { swap(&newer, &older) }
            newer.infos += older.infos.filter { !newer.infos.contains($0) }
            joined[index] = newer
        }
        return joined
    }

    /// - Parameter links: where the identifier is listed now.
    private mutating func insert(_ message: AlertMessage, listedAt links: Set<String?>, keepsUnlisted: Bool, now: Date) {
        func isOlder(_ known: AlertMessage) -> Bool { known.sent <= message.sent || known.sent > now }
        /// Returns whether a message was listed at another address before.
        func isMoved(_ known: AlertMessage) -> Bool {
            known.identifier == message.identifier && known.link != message.link && !links.contains(known.link) && isOlder(known)
        }
        if let index = messages.firstIndex(where: { $0.identifier == message.identifier && $0.link == message.link }) {
            if message.link != nil || isOlder(messages[index]) { messages[index] = message }
            // Reason: two addresses that were listed together are two documents.
            if keepsUnlisted { return }
        } else if let index = messages.firstIndex(where: isMoved) {
            messages[index] = message
        } else {
            messages.append(message)
        }
        messages.removeAll(where: isMoved)
    }

    /// A document that contains a test or a draft now cancels the warning that it contained before.
    ///
    /// - Parameter current: the messages of all other documents. A message that is listed again counts again.
    package mutating func noteEmpty(_ links: Set<String>, _ current: [AlertMessage], now: Date) {
        let back = Set(current.map { $0.identifier + Self.gone })
        messages.removeAll { back.contains($0.identifier) }
        let listed = Set(current.map(\.identifier))
        for message in messages where message.replacedBy == nil && message.kind != .cancel {
            guard let link = message.link, links.contains(link) else { continue }
            if listed.contains(message.identifier) {
                // A cancellation would also end the other document with this identifier.
                messages.removeAll { $0.identifier == message.identifier && $0.link == link }
            } else {
                takeBack(message, now)
            }
        }
    }

    /// The open end of a warning that its feed does not list any more is assumed: a feed may list its newest warnings alone.
    package mutating func noteUnlisted(by current: [AlertMessage]) {
        let listed = Set(current.map(\.identifier))
        for index in messages.indices where !listed.contains(messages[index].identifier) {
            for info in messages[index].infos.indices { messages[index].infos[info].hasOpenEnd = nil }
        }
    }

    /// A service that lists what stands does not say what it has taken back: what it no longer lists, and is not over, was cancelled. What it
    /// lists again stands again.
    ///
    /// - Parameters:
    ///   - current: all that it lists now.
    ///   - before: what it listed before.
    ///   - isNewer: whether its data is newer than before. If not, what it no longer lists is kept, and what it lists again stays ended.
    /// - Returns: the number of events that were kept because the data is not newer.
    @discardableResult
    package mutating func noteMissing(
        from current: [AlertMessage], _ before: [AlertMessage], isNewer: Bool = true, now: Date
    ) -> Int {
        let listed = Set(current.map(\.identifier))
        var keptCount = 0
        if isNewer {
            messages.removeAll { message in
                message.identifier.hasSuffix(Self.gone) && !listed.isDisjoint(with: message.references)
            }
        }
        for event in events(at: nil, language: nil, now: now)
        where event.state == .standing && listed.isDisjoint(with: event.messages) {
            let missing = before.filter { message in
                event.messages.contains(message.identifier)
                    && message.infos.contains { $0.until > now || $0.hasOpenEnd == true }
            }
            if !isNewer, !missing.isEmpty { keptCount += 1 }
            for message in missing where isNewer { takeBack(message, now) }
        }
        return keptCount
    }

    private mutating func takeBack(_ message: AlertMessage, _ now: Date) {
        note(
            AlertMessage(
                identifier: message.identifier + Self.gone, sent: now, kind: .cancel, references: [message.identifier]))
    }

    /// Ends the identifier of a cancellation that was not sent, but concluded from what the service lists.
    static let gone = " gone"

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

    /// Forgets what has been over for long: a late cancellation would find nothing to end. A standing warning without an end is not over.
    package mutating func prune(before date: Date) {
        let over = events(at: nil, language: nil).filter { event in
            !(event.state == .standing && event.infos.contains { $0.hasOpenEnd == true })
                && event.messages.allSatisfy { name in
                    messages.allSatisfy { message in
                        message.identifier != name || message.sent < date && message.infos.allSatisfy { $0.until < date }
                    }
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
    ///   - now: a cancellation counts from the time at which it was sent.
    ///   - listedAt: when the service answered last. An open end is later than the next daily check, which asks again. An archive of old
    ///     warnings is also a list, so a warning without an end is not extended by more than the longest hazard.
    package func events(
        at place: Coordinates?, language: String?, now: Date = .distantFuture, listedAt: Date? = nil
    ) -> [AlertEvent] {
        groups().map { group in
            let lineage = AlertLineage(messages.filter { group.contains($0.identifier) }, at: place, now: now)
            var infos = Self.byIdentifier(lineage.standing).flatMap { $0.infos(at: place, language: language) }
            for index in infos.indices where infos[index].hasOpenEnd == true {
                let (assumed, listed) = (infos[index].until, (listedAt ?? .distantPast) + Self.openDuration)
                infos[index].until = max(assumed, min(listed, assumed + AlertInfo.longestDuration))
            }
            return AlertEvent(messages: group.sorted(), state: lineage.isCancelled ? .cancelled : .standing, infos: infos)
        }
    }

    /// Documents with one identifier may be translations of each other.
    private static func byIdentifier(_ standing: [AlertMessage]) -> [AlertMessage] {
        var (found, known): ([AlertMessage], [String: Int]) = ([], [:])
        for message in standing {
            if let index = known[message.identifier] {
                found[index].infos += message.infos
            } else {
                known[message.identifier] = found.count
                found.append(message)
            }
        }
        return found
    }

    /// Seconds from the answer of a service to an open end: a day and a half, because a daily check may be late.
    private static let openDuration: TimeInterval = 36 * 3600

    /// References and cancellations of messages that are listed now which are not used, one sentence each.
    package func unusedReferences(of current: [AlertMessage], now: Date) -> [String] {
        let listed = Set(current.map(\.identifier))
        let unread = current.count { $0.kind == .cancel && $0.references.isEmpty }
        let unusable = unread == 0 ? [] : ["\(unread) of its cancellations have no readable reference, and are not used"]
        return unusable
            + groups().filter { !listed.isDisjoint(with: $0) }.flatMap { group in
                AlertLineage(messages.filter { group.contains($0.identifier) }, at: nil, now: now).unusedReferences(of: listed)
            }
    }

    /// Identifiers that belong together, by references, directly or over others.
    private func groups() -> [Set<String>] {
        var group: [String: Int] = [:]
        var groups: [Int: Set<String>] = [:]
        for (number, message) in messages.enumerated() {
            var members = Set([message.identifier] + message.references + [message.replacedBy].compactMap { $0 })
            for other in Set(members.compactMap { group[$0] }) { members.formUnion(groups.removeValue(forKey: other) ?? []) }
            for name in members { group[name] = number }
            groups[number] = members
        }
        return groups.sorted { $0.key < $1.key }.map(\.value)
    }
}
