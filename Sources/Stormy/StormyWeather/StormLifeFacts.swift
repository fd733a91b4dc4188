import Foundation

extension StormLife {
    /// The facts that decide whether a change alerts.
    package struct Facts: Sendable, Equatable, Codable {
        /// The highest level.
        package var level: StormSeverity
        /// An official warning was part of it.
        package var isWarned: Bool
        /// The earliest beginning that alerted.
        package var begins: Date
        /// The kinds of the extreme official warnings that were part of it, in order. `nil` if there were none.
        var extremes: [String]?

        /// `true` if these facts alert after the other facts, or if there are no others.
        func isHigher(than other: Facts?) -> Bool {
            guard let other else { return true }
            return level > other.level || isWarned && !other.isWarned
                || other.begins.timeIntervalSince(begins) >= StormLife.earlierStart || isAnotherExtreme(than: other)
        }

        /// `true` if all extreme warnings of the other facts are over or cancelled, and extreme warnings of other kinds are in force.
        func isAnotherExtreme(than other: Facts) -> Bool {
            guard let extremes, let known = other.extremes else { return false }
            return Set(extremes).isDisjoint(with: known)
        }

        /// `true` if these facts alert after the other facts, or have an extreme warning of another kind.
        func hasMore(than other: Facts?) -> Bool {
            isHigher(than: other) || !Set(extremes ?? []).isSubset(of: other?.extremes ?? [])
        }

        mutating func add(extremes others: [String]?) {
            guard let others else { return }
            extremes = Set(others + (extremes ?? [])).sorted()
        }

        func joined(with other: Facts?) -> Facts {
            guard let other else { return self }
            var joined = Facts(
                level: max(level, other.level), isWarned: isWarned || other.isWarned, begins: min(begins, other.begins),
                extremes: extremes)
            joined.add(extremes: other.extremes)
            return joined
        }
    }
}

extension StormReason {
    /// The hazard and the name of an extreme official warning. `nil` for other reasons.
    var extremeKind: String? {
        guard kind == .alert, StormSeverity([self]) == .extreme else { return nil }
        return "\(hazard?.rawValue ?? "") \(event?.lowercased() ?? "")"
    }
}
