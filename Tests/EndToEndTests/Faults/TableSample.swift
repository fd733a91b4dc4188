import Foundation

/// Which rows of a large table are played: all of them, or one in `TABLE_SAMPLE`, chosen by `SEED`.
enum TableSample {
    private static let oneIn = number("TABLE_SAMPLE") ?? 1
    private static let seed = number("SEED") ?? 0

    /// - Parameter column: of one table; in each of them other rows are chosen.
    static func rows<Row>(of table: [Row], in column: String) -> [Row] {
        let shift = column.utf8.reduce(seed) { $0 &* 31 &+ Int($1) }
        return table.enumerated().filter { (UInt(bitPattern: shift) &+ UInt($0.offset)).isMultiple(of: UInt(oneIn)) }.map(
            \.element)
    }

    private static func number(_ name: String) -> Int? {
        ProcessInfo.processInfo.environment[name].flatMap { Int($0) }.flatMap { $0 > 0 ? $0 : nil }
    }
}
