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

    /// A record from its parts.
    package init(id: Int64, window: StormWindow, told: Bool, isClosed: Bool = false) {
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

    /// A decision from its parts.
    package init(changes: [Change] = [], close: [Int64] = []) {
        self.changes = changes
        self.close = close
    }

    /// Nothing to do.
    package static let none = StormDecision()
}

/// Decides which storm is which when a new forecast comes.
package enum StormTracker {
    /// Compares the records of one place with what a forecast shows.
    ///
    /// Seen and known windows that overlap or lie within six hours of each other, directly or over others, are one
    /// storm. It keeps its record (the told one, else the oldest), so that one storm is told once. The window follows
    /// the newest forecast; only a beginning that is past stays. A forecast that no longer shows a storm, or shows
    /// nothing, changes no window: the record closes when its time is over. Applying the decision and asking again
    /// with the same arguments gives ``StormDecision/none``.
    package static func decide(existing: [KnownStorm], seen: Assessment, now: Date) -> StormDecision {
        let seenWindows = seen.windows
        var decision = StormDecision()
        for storm in StormWindow.merge(seenWindows + existing.map(\.window)) {
            let shown = seenWindows.filter { storm.contains($0) }
            let records = existing.filter { storm.contains($0.window) }
            guard let first = shown.first, let last = shown.last else {
                decision.close += records.filter { !$0.isClosed && $0.window.until <= now }.map(\.id)
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
        return decision
    }
}
