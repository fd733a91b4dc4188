import Foundation

// Warnings whose areas cannot be compared with a place.

extension AlertMessage {
    /// The areas of a warning that cannot be placed.
    package enum Unplaced: Sendable, Equatable { case all, some }

    /// Returns which areas of a warning that counts cannot be placed. `nil` if none, and if the other areas contain the place: the warning
    /// is then shown there.
    ///
    /// Unreadable shapes and too many corners are not included. They have their own sentences.
    ///
    /// - Parameters:
    ///   - place: the place that may be in these areas.
    ///   - least: the least severity that counts.
    package func unplaced(at place: Coordinates?, least: CAPSeverity, now: Date) -> Unplaced? {
        if kind == .cancel || hasTooManyCorners == true || hasUnreadableShapes { return nil }
        let counting = infos.filter { info in
            (info.severity?.rank ?? 0) >= least.rank && (info.until > now || info.hasOpenEnd == true)
        }
        if let place, counting.contains(where: { $0.contains(place) == true }) { return nil }
        guard counting.contains(where: { $0.areas.isEmpty || $0.areas.contains(where: \.isIncomplete) }) else { return nil }
        return counting.contains { $0.areas.contains(where: \.isPlaceable) } ? .some : .all
    }

    /// `true` if none of its areas is drawn, and the region table has none of its codes.
    package var isCodedOnly: Bool { !infos.isEmpty && infos.allSatisfy { !$0.areas.contains(where: \.isPlaceable) } }

    /// `true` if a polygon or a circle of an area could not be read, or an area has nothing but shapes without an area.
    package var hasUnreadableShapes: Bool { infos.contains { $0.areas.contains(where: \.hasUnreadableShape) } }

    /// Codes that the region table lacks, of areas that are not drawn. Each once, in their order.
    package var unknownCodes: [RegionCode] {
        var found: Set<RegionCode> = []
        return infos.flatMap { $0.areas.flatMap(\.unknownCodes) }.filter { found.insert($0).inserted }
    }
}
