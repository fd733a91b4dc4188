import Foundation

extension StormLife {
    /// A change to the storms of a place.
    package enum Change: Sendable, Equatable {
        /// A new storm.
        case open(StormLife)
        /// A known storm has changed. The value is the number and the new state of the storm.
        case change(Int64, StormLife)
    }

    /// Updates the storms of one place after an assessment.
    ///
    /// New and known windows belong to one storm if they overlap, or if their distance is at most six hours, directly or through
    /// other windows. Windows of the same warning belong to one storm at any distance. If several records form one storm, the
    /// storm keeps the record whose notification was shown, or else the oldest record. For this reason, only one alert is shown
    /// for a storm. A repeated call with the same data changes nothing.
    ///
    /// - Parameter known: The storms of the place with their numbers. Also pass storms that ended within the last six hours, so
    ///   that a storm that is expected again keeps its record.
    package static func follow(_ known: [(id: Int64, life: StormLife)], _ look: StormCheckData) -> [Change] {
        var changes: [Change] = []
        func note(_ id: Int64, _ life: StormLife, from before: StormLife) {
            if life != before { changes.append(.change(id, life)) }
        }
        let open = known.filter { $0.life.outlook != .joined }
        for storm in storms(look.assessment.reasons, open) {
            if storm.seen.isEmpty {
                for (id, before) in storm.records {
                    var life = before
                    _ = life.handle(.judged([], look))
                    note(id, life, from: before)
                }
                continue
            }
            guard let (id, before) = storm.records.min(by: { ($0.life.rank, $0.id) < ($1.life.rank, $1.id) }) else {
                let span = StormWindow(
                    from: storm.seen.map(\.from).min() ?? look.now, until: storm.seen.map(\.until).max() ?? look.now)
                changes.append(.open(StormLife(window: span, reasons: StormReason.sorted(storm.seen))))
                continue
            }
            var life = before
            for (other, taken) in storm.records where other != id {
                life.absorb(taken, now: look.now)
                var joined = taken
                _ = joined.handle(.joined)
                note(other, joined, from: taken)
            }
            _ = life.handle(.judged(storm.seen, look))
            note(id, life, from: before)
        }
        return changes
    }

    private var rank: Int { isShown ? 0 : shown != nil ? 1 : 2 }

    /// The windows, reasons and records that form one storm.
    private struct Storm {
        var span: StormWindow
        var messages: Set<String>
        /// The reasons in the newest data that belong to the storm.
        var seen: [StormReason] = []
        var records: [(id: Int64, life: StormLife)] = []

        func isOne(with other: Storm) -> Bool {
            let gap = max(other.span.from.timeIntervalSince(span.until), span.from.timeIntervalSince(other.span.until))
            return gap <= StormWindow.mergeGap || !messages.isDisjoint(with: other.messages)
        }

        mutating func join(_ other: Storm) {
            span = StormWindow(from: min(span.from, other.span.from), until: max(span.until, other.span.until))
            messages.formUnion(other.messages)
            seen += other.seen
            records += other.records
        }
    }

    /// Groups reasons and records into storms, ascending by beginning.
    private static func storms(_ reasons: [StormReason], _ records: [(id: Int64, life: StormLife)]) -> [Storm] {
        let parts =
            reasons.map { Storm(span: $0.window, messages: Set($0.messages ?? []), seen: [$0]) }
            + records.map { id, life in
                Storm(span: life.window, messages: Set(life.reasons.flatMap { $0.messages ?? [] }), records: [(id, life)])
            }
        var storms: [Storm] = []
        for part in parts {
            var storm = part
            // A joined storm is longer than before, so the storm may now overlap other storms.
            while let index = storms.firstIndex(where: { $0.isOne(with: storm) }) { storm.join(storms.remove(at: index)) }
            storms.append(storm)
        }
        return storms.sorted { ($0.span.from, $0.span.until) < ($1.span.from, $1.span.until) }
    }
}
