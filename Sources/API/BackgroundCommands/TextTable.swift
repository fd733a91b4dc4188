/// A table with a header and aligned columns. The remarks of a row are printed below the row.
package struct TextTable {
    private let header: [String]
    private var rows: [(cells: [String], remarks: [String])] = []

    /// - Parameter header: The names of the columns. Each row has the same number of cells.
    package init(_ header: String...) { self.header = header }

    /// Adds a row. A line break in a cell or a remark becomes a space.
    package mutating func add(_ cells: [String], remarks: [String] = []) {
        rows.append((cells.map(Output.oneLine), remarks.map(Output.oneLine)))
    }

    /// The lines to print. The width of the last column is not limited.
    package var lines: [String] {
        let widths = header.indices.map { column in
            ([header] + rows.map(\.cells)).map { $0[column].count }.max() ?? 0
        }
        let indentation = String(repeating: " ", count: (widths.first ?? 0) + Self.gap.count)
        return [Self.line(header, widths)]
            + rows.flatMap { row in [Self.line(row.cells, widths)] + row.remarks.map { indentation + $0 } }
    }

    private static let gap = "  "

    private static func line(_ cells: [String], _ widths: [Int]) -> String {
        var line = ""
        for (index, cell) in cells.enumerated() where !cell.isEmpty {
            let column = widths[..<index].reduce(0) { $0 + $1 + gap.count }
            line += String(repeating: " ", count: max(0, column - line.count)) + cell
        }
        return line
    }
}
