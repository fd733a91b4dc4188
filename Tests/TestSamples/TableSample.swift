import Foundation

/// Selects the rows of a large table that are tested. If `TABLE_SAMPLE` is not set, all rows are tested. If `TABLE_SAMPLE` is a
/// number N, one of every N rows is tested. `SEED` chooses the rows. N consecutive seeds test every row.
package enum TableSample {
    private static let oneIn = number("TABLE_SAMPLE") ?? 1
    private static let seed = number("SEED") ?? 0

    /// - Parameter column: The name of the table or of its column. For different names, a seed chooses different rows.
    package static func rows<Table: Sequence>(of table: Table, in column: String) -> [Table.Element] {
        let shift = column.utf8.reduce(seed) { $0 &* 31 &+ Int($1) }
        return table.enumerated().filter { (UInt(bitPattern: shift) &+ UInt($0.offset)).isMultiple(of: UInt(oneIn)) }.map(
            \.element)
    }

    private static func number(_ name: String) -> Int? {
        ProcessInfo.processInfo.environment[name].flatMap { Int($0) }.flatMap { $0 > 0 ? $0 : nil }
    }
}
