import Foundation

/// The known messages of one event, and which of them stand.
struct AlertLineage {
    /// Oldest first.
    private let known: [AlertMessage]
    private let names: [String: AlertMessage]
    /// Cancellations of the place that have been sent.
    private let cancellations: [AlertMessage]
    private let circles: [[AlertMessage]]
    /// Messages that stand: not replaced and not cancelled.
    let standing: [AlertMessage]

    /// - Parameters:
    ///   - place: `nil`: cancellations for every place count.
    ///   - now: a cancellation counts from the time at which it was sent.
    init(_ messages: [AlertMessage], at place: Coordinates?, now: Date) {
        let known = messages.sorted { ($0.sent, $0.identifier) < ($1.sent, $1.identifier) }
        let names = Dictionary(known.map { ($0.identifier, $0) }) { first, _ in first }
        let cancellations = known.filter { $0.kind == .cancel && $0.isMeant(at: place) && $0.isSent(by: now) }
        let (replaced, circles) = Self.replaced(in: known, names)
        let cancelled = Set(
            cancellations.flatMap { cancellation in
                cancellation.references.filter { names[$0].map(cancellation.mayCancel) ?? false }
            })
        let left = known.filter {
            $0.kind != .cancel && !replaced.contains($0.identifier) && !cancelled.contains($0.identifier)
        }
        // Every part of a split warning counts until an update or a cancellation of that part.
        let updates = left.filter { $0.kind == .update }
        standing = left.filter { message in
            !updates.contains { Self.means($0, also: message, in: names) }
                && !cancellations.contains { $0.mayCancel(message) && Self.means($0, also: message, in: names) }
        }
        (self.known, self.names, self.cancellations, self.circles) = (known, names, cancellations, circles)
    }

    var isCancelled: Bool { standing.isEmpty && !cancellations.isEmpty }

    /// Messages that an update, or the content of a document, takes the place of. A message never replaces itself. The newest
    /// message of a circle counts.
    private static func replaced(
        in known: [AlertMessage], _ names: [String: AlertMessage]
    ) -> (replaced: Set<String>, circles: [[AlertMessage]]) {
        func replacedDirectly(by message: AlertMessage) -> [String] {
            guard message.kind == .update else { return [] }
            return Set(message.references).filter { $0 != message.identifier && names[$0] != nil }
        }
        var replaced = Set(known.flatMap(replacedDirectly))
        var reached: Set<String> = []
        /// All messages that a chain of updates from one message leads to, with that message.
        func chain(from message: AlertMessage) -> [AlertMessage] {
            var (chain, open): ([AlertMessage], [AlertMessage]) = ([], [message])
            while let next = open.popLast() {
                guard reached.insert(next.identifier).inserted else { continue }
                chain.append(next)
                open += replacedDirectly(by: next).compactMap { names[$0] }
            }
            return chain
        }
        for message in known where !replaced.contains(message.identifier) { _ = chain(from: message) }
        // No chain begins outside these: they replace each other.
        var circles: [[AlertMessage]] = []
        for newest in known.reversed() where !reached.contains(newest.identifier) && newest.replacedBy == nil {
            replaced.remove(newest.identifier)
            let circle = chain(from: newest)
            if circle.count > 1 { circles.append(circle) }
        }
        return (replaced.union(known.filter { $0.replacedBy != nil }.map(\.identifier)), circles)
    }

    /// Seconds within which the parts of a warning that is split are sent.
    private static let splitTime: TimeInterval = 120

    /// Whether a later message that names an early one of a chain means what has followed on that one, too: it names nothing beside the
    /// chain, as the message on a part would, and was not sent together with what has followed.
    private static func means(_ later: AlertMessage, also message: AlertMessage, in names: [String: AlertMessage]) -> Bool {
        guard later.identifier != message.identifier, !later.references.isEmpty,
            later.sent.timeIntervalSince(message.sent) > splitTime
        else { return false }
        var (chain, open) = (Set<String>(), message.references)
        while let name = open.popLast() {
            guard chain.insert(name).inserted else { continue }
            open += names[name]?.references ?? []
        }
        return chain.isSuperset(of: later.references)
    }

    // MARK: Unused references

    /// Returns a sentence for each unused reference of the listed messages.
    func unusedReferences(of listed: Set<String>) -> [String] {
        let messages = known.filter { listed.contains($0.identifier) }
        let itself = messages.filter { $0.kind == .update && $0.references.contains($0.identifier) }.map {
            "the update \(Self.shown($0)) refers to itself, and counts as a separate warning"
        }
        let circular = circles.filter { circle in circle.contains { listed.contains($0.identifier) } }.map { circle in
            "\(circle.count) updates replace each other, and the newest of them counts (\(Self.shown(circle[0])))"
        }
        let cancelling = messages.filter { $0.kind == .cancel }.flatMap { cancellation in
            cancellation.references.compactMap { names[$0] }.filter { $0.kind != .cancel }.compactMap {
                unused(cancellation, of: $0)
            }
        }
        return itself + circular + cancelling
    }

    private func unused(_ cancellation: AlertMessage, of message: AlertMessage) -> String? {
        let start = "the cancellation of \(Self.shown(message)) does not count"
        if !cancellation.isFromSender(of: message) { return start + ": it is from another sender (\(Self.shown(cancellation)))" }
        if cancellation.sent < message.sent { return start + ": it was sent before the warning" }
        if !cancellations.contains(cancellation) { return start + " yet: it is dated \(cancellation.sent.formatted(.iso8601))" }
        return nil
    }

    private static func shown(_ message: AlertMessage) -> String { message.identifier.singleLine(limit: 80) }
}

extension AlertMessage {
    /// Concluded by ``AlertBook`` from what the service lists.
    private var isConcluded: Bool { identifier.hasSuffix(AlertBook.gone) }

    fileprivate func isSent(by now: Date) -> Bool { sent <= now || isConcluded }

    /// A cancellation does not mean messages that were sent after it, also if the identifier is the same.
    fileprivate func mayCancel(_ message: AlertMessage) -> Bool {
        isConcluded || sent >= message.sent && isFromSender(of: message)
    }

    /// Services without senders in their messages have one sender.
    fileprivate func isFromSender(of message: AlertMessage) -> Bool {
        guard let sender, let other = message.sender else { return true }
        return sender.lowercased() == other.lowercased()
    }
}
