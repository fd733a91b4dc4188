import Foundation

/// The known messages of one event, and the messages that are in force.
struct AlertLineage {
    /// The messages, oldest first. Several documents may have one identifier.
    private let known: [AlertMessage]
    /// The indices of ``known`` by identifier.
    private let names: [String: [Int]]
    private let now: Date
    private let circles: [[AlertMessage]]
    private let hasCancellations: Bool
    /// Messages that are in force, because they were not replaced and not cancelled.
    let standing: [AlertMessage]

    /// - Parameters:
    ///   - place: The place. If the place is `nil`, cancellations for all places are used.
    ///   - now: The current time. A cancellation or an update has no effect before the time at which it was sent.
    init(_ messages: [AlertMessage], at place: Coordinates?, now: Date) {
        let known = messages.sorted {
            ($0.sent, $0.identifier, $0.link ?? "") < ($1.sent, $1.identifier, $1.link ?? "")
        }
        let names = Dictionary(grouping: known.indices) { known[$0].identifier }
        let cancellations = known.filter { $0.kind == .cancel && $0.isMeant(at: place) && $0.isSent(by: now) }
        let (replaced, circles) = Self.replaced(in: known, names, now)
        let cancelled = Set(
            cancellations.flatMap { cancellation in
                cancellation.named.flatMap { names[$0] ?? [] }.filter { cancellation.mayEnd(known[$0]) }
            })
        let left = known.indices.filter {
            known[$0].kind != .cancel && !replaced.contains($0) && !cancelled.contains($0)
        }.map { known[$0] }
        // Each part of a split warning stays in force until an update or a cancellation of this part.
        let updates = left.filter { $0.kind == .update && $0.isSent(by: now) }
        let references = names.mapValues { Set($0.flatMap { known[$0].references }) }
        standing = left.filter { message in
            !updates.contains { $0.mayEnd(message) && Self.means($0, also: message, references) && $0.covers(message, at: place) }
                && !cancellations.contains { $0.mayEnd(message) && Self.means($0, also: message, references) }
        }
        (self.known, self.names, self.now, self.circles) = (known, names, now, circles)
        hasCancellations = !cancellations.isEmpty
    }

    var isCancelled: Bool { standing.isEmpty && hasCancellations }

    /// Returns the indices of messages that an update, or the new content of a document, replaces. A message never replaces
    /// itself. If messages replace each other in a circle, only the newest message is in force.
    private static func replaced(
        in known: [AlertMessage], _ names: [String: [Int]], _ now: Date
    ) -> (replaced: Set<Int>, circles: [[AlertMessage]]) {
        func replacedDirectly(by index: Int) -> [Int] {
            let message = known[index]
            guard message.kind == .update, message.isSent(by: now) else { return [] }
            return message.named.flatMap { names[$0] ?? [] }.filter { other in
                guard message.mayEnd(known[other]) else { return false }
                // If two documents have the identifier of one update, the documents are parts of this update.
                return known[other].identifier != message.identifier
                    || known[other].kind == .alert && known[other].sent < message.sent
            }
        }
        var replaced = Set(known.indices.flatMap(replacedDirectly))
        var reached: Set<Int> = []
        /// Returns all messages that a chain of updates from one message leads to, including that message.
        func chain(from index: Int) -> [AlertMessage] {
            var (chain, open): ([AlertMessage], [Int]) = ([], [index])
            while let next = open.popLast() {
                guard reached.insert(next).inserted else { continue }
                chain.append(known[next])
                open += replacedDirectly(by: next)
            }
            return chain
        }
        for index in known.indices where !replaced.contains(index) { _ = chain(from: index) }
        // The remaining messages replace each other in circles. No chain from another message leads to these messages.
        var circles: [[AlertMessage]] = []
        for newest in known.indices.reversed() where !reached.contains(newest) && known[newest].replacedBy == nil {
            replaced.remove(newest)
            let circle = chain(from: newest)
            if circle.count > 1 { circles.append(circle) }
        }
        return (replaced.union(known.indices.filter { known[$0].replacedBy != nil }), circles)
    }

    /// The number of seconds within which the parts of a split warning are sent.
    private static let splitTime: TimeInterval = 120

    /// Returns whether a later message also ends `message`, although the later message only refers to an earlier message of the
    /// same chain. The result is `true` if all references of the later message are in the chain, and the two messages were not
    /// sent together. A later message about one part of a split warning also refers to this part. The chain of the other parts
    /// does not contain this part.
    private static func means(_ later: AlertMessage, also message: AlertMessage, _ references: [String: Set<String>]) -> Bool {
        guard later.identifier != message.identifier, !later.references.isEmpty,
            later.sent.timeIntervalSince(message.sent) > splitTime
        else { return false }
        var (chain, open) = (Set<String>(), message.references)
        while let name = open.popLast() {
            guard chain.insert(name).inserted else { continue }
            open += references[name] ?? []
        }
        return chain.isSuperset(of: later.references)
    }

    // MARK: Unused references

    /// Returns one sentence for each unused reference in the messages that the service lists.
    func unusedReferences(of listed: Set<String>) -> [String] {
        let messages = known.filter { listed.contains($0.identifier) }
        let itself = messages.filter {
            $0.kind == .update && $0.references.contains($0.identifier) && names[$0.identifier]?.count == 1
        }.map {
            "the update \(Self.shown($0)) refers to itself, and counts as a separate warning"
        }
        let circular = circles.filter { circle in circle.contains { listed.contains($0.identifier) } }.map { circle in
            "\(circle.count) updates replace each other, and the newest update counts (\(Self.shown(circle[0])))"
        }
        let ending = messages.filter { $0.kind != .alert }.flatMap { later in
            Set(later.references).subtracting([later.identifier]).sorted().flatMap { names[$0] ?? [] }
                .filter { known[$0].kind != .cancel }.compactMap { unused(later, of: known[$0]) }
        }
        return itself + circular + ending
    }

    /// Returns the reason why a cancellation or an update does not end a message that it refers to. Returns `nil` if the message
    /// was ended.
    private func unused(_ later: AlertMessage, of message: AlertMessage) -> String? {
        let name = Self.shown(message)
        let (what, effect) = later.kind == .cancel ? ("cancellation", "count") : ("update", "replace the warning")
        let start = "the \(what) of \(name) does not \(effect)"
        if !later.isFromSender(of: message) { return start + ": the \(what) is from another sender (\(Self.shown(later)))" }
        if later.sent < message.sent { return start + ": the \(what) was sent before the warning" }
        if !later.isSent(by: now) { return start + " yet: the \(what) is dated \(later.sent.formatted(.iso8601))" }
        return nil
    }

    private static func shown(_ message: AlertMessage) -> String { message.identifier.singleLine(limit: 80) }
}

extension AlertMessage {
    /// `true` if ``AlertBook`` created the cancellation, because the service no longer listed the warning.
    private var isConcluded: Bool { identifier.hasSuffix(AlertBook.gone) }

    /// Returns whether the message was sent before `now`. A time without an offset may be local, up to half a day ahead of UTC.
    fileprivate func isSent(by now: Date) -> Bool { (earliestSent ?? sent) <= now || isConcluded }

    /// The identifiers of the messages that this message ends: its references, and other messages with the same identifier.
    fileprivate var named: Set<String> { Set(references + [identifier]) }

    /// Returns whether the message may end another message. A cancellation or an update does not affect messages that were sent
    /// after it, even if the identifier is the same.
    fileprivate func mayEnd(_ message: AlertMessage) -> Bool {
        isConcluded || sent >= message.sent && isFromSender(of: message)
    }

    /// Returns whether an update has a part for each part of another message at a place. The two parts have the same hazard, and
    /// the part of the update is at least as severe or has the same name.
    ///
    /// - Parameter place: `nil` to compare no areas.
    fileprivate func covers(_ message: AlertMessage, at place: Coordinates?) -> Bool {
        func parts(_ message: AlertMessage) -> [AlertInfo] {
            message.infos.filter { info in place.map { info.contains($0) ?? true } ?? true }
        }
        let own = parts(self)
        return parts(message).allSatisfy { part in own.contains { $0.covers(part) } }
    }

    /// Returns whether two messages have the same sender. Also returns `true` if one of the messages has no sender.
    fileprivate func isFromSender(of message: AlertMessage) -> Bool {
        guard let sender, let other = message.sender else { return true }
        return sender.lowercased() == other.lowercased()
    }
}

extension AlertInfo {
    fileprivate func covers(_ other: AlertInfo) -> Bool {
        let isSameHazard = hazard == other.hazard || hazard.isUnclassified || other.hazard.isUnclassified
        let isAsSevere = severity?.rank ?? 0 >= other.severity?.rank ?? 0
        return isSameHazard && (isAsSevere || event.lowercased() == other.event.lowercased())
    }
}
