import Foundation

/// The time one storm takes, from its first hour to the end of its last.
package struct StormWindow: Sendable, Hashable, Codable {
    /// When it begins.
    package var from: Date
    /// When it ends; never before ``from``.
    package var until: Date

    /// Windows that lie no more than this apart are one storm, in seconds (6 h).
    package static let mergeGap: TimeInterval = 6 * 3600

    /// A window; bounds given the wrong way round are exchanged.
    package init(from: Date, until: Date) {
        self.from = min(from, until)
        self.until = max(from, until)
    }

    /// The storms among windows: overlapping ones, and those at most `gap` seconds apart, become one. The result is
    /// ascending, and two neighbours always lie more than `gap` apart; order and repetition of the input don't matter.
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
