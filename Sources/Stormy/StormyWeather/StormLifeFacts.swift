import Foundation

extension StormLife {
    /// The facts that decide whether a change of the storm causes an alert.
    package struct Facts: Sendable, Equatable, Codable {
        /// The highest level.
        package var level: StormSeverity
        /// `true` if the facts include an official warning.
        package var isWarned: Bool
        /// The earliest start of the storm in the alerts that were shown.
        package var begins: Date
        /// The kinds of the extreme official warnings, in order. `nil` if there are no such warnings.
        var extremes: [String]?
        /// The highest level of the official warnings for each hazard. `nil` if there are no such warnings.
        var hazards: [String: StormSeverity]?

        /// Returns `true` if these facts cause an alert after the user was shown the other facts, or if the other facts are
        /// `nil`.
        func isHigher(than other: Facts?) -> Bool {
            guard let other else { return true }
            return level > other.level || isWarned && !other.isWarned
                || other.begins.timeIntervalSince(begins) >= StormLife.earlierStart || isAnotherExtreme(than: other)
        }

        /// Returns `true` if both facts contain extreme warnings, and no kind of extreme warning is in both facts.
        func isAnotherExtreme(than other: Facts) -> Bool {
            guard let extremes, let known = other.extremes else { return false }
            return Set(extremes).isDisjoint(with: known)
        }

        /// `true` if an official warning of these facts has a hazard that the other facts do not have, or have only at a lower
        /// level.
        ///
        /// Facts that an earlier version of Stormy stored do not contain the hazards of their warnings.
        func isAnotherHazard(than other: Facts?) -> Bool {
            guard let hazards, let other else { return hazards != nil }
            guard let known = other.hazards else { return !other.isWarned }
            return hazards.contains { hazard, level in known[hazard].map { level > $0 } ?? true }
        }

        /// Returns `true` if these facts are higher than the other facts, have an extreme warning of another kind, or have a
        /// warning of another hazard.
        func hasMore(than other: Facts?) -> Bool {
            isHigher(than: other) || isAnotherHazard(than: other)
                || !Set(extremes ?? []).isSubset(of: other?.extremes ?? [])
        }

        mutating func add(extremes others: [String]?) {
            guard let others else { return }
            extremes = Set(others + (extremes ?? [])).sorted()
        }

        mutating func add(hazards others: [String: StormSeverity]?) {
            guard let others else { return }
            hazards = others.merging(hazards ?? [:], uniquingKeysWith: max)
        }

        /// Adds the official warnings of other facts.
        mutating func add(warningsOf other: Facts) {
            add(extremes: other.extremes)
            add(hazards: other.hazards)
        }

        func joined(with other: Facts?) -> Facts {
            guard let other else { return self }
            var joined = Facts(
                level: max(level, other.level), isWarned: isWarned || other.isWarned, begins: min(begins, other.begins),
                extremes: extremes, hazards: hazards)
            joined.add(warningsOf: other)
            return joined
        }
    }
}

extension StormLife.Facts {
    /// The facts of the reasons of a storm.
    init(of reasons: [StormReason], begins: Date) {
        let warnings = reasons.filter { $0.kind == .alert }
        self.init(
            level: StormSeverity(reasons), isWarned: !warnings.isEmpty, begins: reasons.map(\.from).min() ?? begins)
        if warnings.isEmpty { return }
        hazards = Dictionary(warnings.map { ($0.hazard?.rawValue ?? "", StormSeverity([$0])) }, uniquingKeysWith: max)
        let kinds = warnings.compactMap(\.extremeKind)
        if !kinds.isEmpty { extremes = Set(kinds).sorted() }
    }
}

extension StormReason {
    /// The hazard and the name of an extreme official warning. `nil` for other reasons.
    var extremeKind: String? {
        guard kind == .alert, StormSeverity([self]) == .extreme else { return nil }
        return "\(hazard?.rawValue ?? "") \(event?.lowercased() ?? "")"
    }
}
