import Foundation

/// The time of a storm, from its first hour to the end of its last hour.
package struct StormWindow: Sendable, Hashable, Codable {
    /// The beginning of the window.
    package var from: Date
    /// The end of the window. The end is never before ``from``.
    package var until: Date

    /// The maximum distance in seconds (6 h) between two windows of the same storm.
    package static let mergeGap: TimeInterval = 6 * 3600

    /// Creates a window. Bounds in the wrong order are exchanged.
    package init(from: Date, until: Date) {
        self.from = min(from, until)
        self.until = max(from, until)
    }

    /// Joins windows into storms. Windows that overlap, or whose distance is at most `gap` seconds, become one window. The result
    /// is ascending, and the distances of its windows are more than `gap`. The order of the input and repeated windows have no
    /// effect.
    package static func merge(_ windows: [StormWindow], gap: TimeInterval = mergeGap) -> [StormWindow] {
        var storms: [StormWindow] = []
        for window in windows.sorted(by: { ($0.from, $0.until) < ($1.from, $1.until) }) {
            if let last = storms.last, window.from.timeIntervalSince(last.until) <= gap {
                storms[storms.count - 1].until = max(last.until, window.until)
            } else {
                storms.append(window)
            }
        }
        return storms
    }

    func contains(_ other: StormWindow) -> Bool { from <= other.from && other.until <= until }
}
