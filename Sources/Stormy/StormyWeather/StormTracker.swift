import Foundation

/// A storm on record for one place.
package struct KnownStorm: Sendable, Equatable {
    /// The record's id.
    package var id: Int64
    /// When it was last expected.
    package var window: StormWindow
    /// Whether the person has been told.
    package var told: Bool
    /// Whether the record was closed already. Pass storms that ended within the last six hours too, so that a storm
    /// that comes back is the same one and not told twice.
    package var isClosed: Bool
    /// Messages of the warnings that it was seen by.
    package var messages: Set<String>
    /// It was seen by warnings alone: when they are cancelled, nothing is left of it.
    package var isWarnedOfOnly: Bool

    /// A record from its parts.
    package init(
        id: Int64, window: StormWindow, told: Bool, isClosed: Bool = false, messages: Set<String> = [],
        isWarnedOfOnly: Bool = false
    ) {
        self.messages = messages
        self.isWarnedOfOnly = isWarnedOfOnly
        self.id = id
        self.window = window
        self.told = told
        self.isClosed = isClosed
    }
}

/// What to do with the records of one place.
package struct StormDecision: Sendable, Equatable {
    /// A change to one record.
    package enum Change: Sendable, Equatable {
        /// A new storm: a new record, to be told.
        case open(StormWindow)
        /// The same storm, longer, shorter or moved: write this window (and reopen a closed record). Not told again.
        case extend(id: Int64, StormWindow)
    }

    /// Ascending by window; empty when the records already say what is seen.
    package var changes: [Change]
    /// Records to close, ascending: their time is over, or another record has taken their storm in.
    package var close: [Int64]
    /// Of these, those that were cancelled: what the person was told of them is taken back.
    package var withdraw: [Int64]

    /// A decision from its parts.
    package init(changes: [Change] = [], close: [Int64] = [], withdraw: [Int64] = []) {
        self.withdraw = withdraw
        self.changes = changes
        self.close = close
    }

    /// Nothing to do.
    package static let none = StormDecision()
}

/// Decides which storm is which when a new forecast comes.
package enum StormTracker {
    /// Compares the records of one place with what a forecast and warnings show.
    ///
    /// Seen and known windows that overlap or lie within six hours of each other, directly or over others, are one
    /// storm, and so are those that one warning tells of, whenever it moves. It keeps its record (the told one, else the oldest), so
    /// that one storm is told once. The window follows the newest forecast; only a beginning that is past stays. A forecast that no
    /// longer shows a storm, or shows nothing, changes no window: the record closes when its time is over, or when the warnings that
    /// alone told of it are cancelled. Applying the decision and asking again with the same arguments gives ``StormDecision/none``.
    package static func decide(existing: [KnownStorm], seen: Assessment, now: Date) -> StormDecision {
        let cancelled = Set(seen.cancelled ?? [])
        var decision = StormDecision()
        for storm in storms(seen.reasons, existing) {
            let records = storm.records
            guard let last = storm.shown.last, let first = storm.shown.first else {
                for record in records where !record.isClosed {
                    let isOver = record.window.until <= now
                    let isCancelled = !isOver && record.isWarnedOfOnly && !record.messages.isDisjoint(with: cancelled)
                    if isCancelled { decision.withdraw.append(record.id) }
                    if isCancelled || isOver { decision.close.append(record.id) }
                }
                continue
            }
            guard let record = records.min(by: { ($0.told ? 0 : 1, $0.id) < ($1.told ? 0 : 1, $1.id) }) else {
                decision.changes.append(.open(StormWindow(from: first.from, until: last.until)))
                continue
            }
            let begun = records.map(\.window.from).filter { $0 <= now }.min()
            let window = StormWindow(from: min(begun ?? first.from, first.from), until: last.until)
            if window != record.window || record.isClosed {
                decision.changes.append(.extend(id: record.id, window))
            }
            decision.close += records.filter { $0.id != record.id && !$0.isClosed }.map(\.id)
        }
        decision.close.sort()
        decision.withdraw.sort()
        return decision
    }

    /// What is one storm.
    private struct Storm {
        var span: StormWindow
        var messages: Set<String>
        /// The windows that are seen of it, merged, ascending.
        var shown: [StormWindow] = []
        var records: [KnownStorm] = []

        func isOne(with other: Storm) -> Bool {
            let gap = max(other.span.from.timeIntervalSince(span.until), span.from.timeIntervalSince(other.span.until))
            return gap <= StormWindow.mergeGap || !messages.isDisjoint(with: other.messages)
        }

        mutating func join(_ other: Storm) {
            span = StormWindow(from: min(span.from, other.span.from), until: max(span.until, other.span.until))
            messages.formUnion(other.messages)
            shown = StormWindow.merge(shown + other.shown)
            records += other.records
        }
    }

    /// Ascending by when they begin.
    private static func storms(_ reasons: [StormReason], _ records: [KnownStorm]) -> [Storm] {
        let parts =
            reasons.map { Storm(span: $0.window, messages: Set($0.messages ?? []), shown: [$0.window]) }
            + records.map { Storm(span: $0.window, messages: $0.messages, records: [$0]) }
        var storms: [Storm] = []
        for part in parts {
            var storm = part
            // What it joins may reach others.
            while let index = storms.firstIndex(where: { $0.isOne(with: storm) }) { storm.join(storms.remove(at: index)) }
            storms.append(storm)
        }
        return storms.sorted { ($0.span.from, $0.span.until) < ($1.span.from, $1.span.until) }
    }
}
