import Foundation
import Testing

@testable import StormyConfiguration

/// Compares the page of the configuration keys with the keys of the parser.
@Suite struct ConfigurationKeysPageTests {
    /// A row of a table on the page of the configuration keys.
    private struct Row {
        var section: String
        var key: String
        /// The default in TOML; `nil` if the key has no default.
        var value: String?
    }

    private static func rows() throws -> [Row] {
        let page = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .appending(path: "../../Sources/Stormy/StormyWeather/StormyWeather.docc/ConfigurationKeys.md").standardized
        var section = ""
        var rows: [Row] = []
        for line in try String(contentsOf: page, encoding: .utf8).split(separator: "\n") {
            if let heading = line.wholeMatch(of: /## Section ([\w.]+)/) { section = String(heading.1) }
            guard let row = line.prefixMatch(of: /\| `(\w+)` \| [^|]+ \| ([^|]+) \|/) else { continue }
            let value = row.2.hasPrefix("`") ? row.2.trimmingCharacters(in: CharacterSet(charactersIn: "`")) : nil
            rows.append(Row(section: section, key: String(row.1), value: value))
        }
        return rows
    }

    @Test func `the page lists every key in the order of the parser`() throws {
        #expect(try Self.rows().map(\.key) == ConfigurationParser.allKeys)
    }

    /// The configuration contains no defaults for destinations. The code that uses the destinations contains these defaults.
    @Test func `the defaults on the page are the defaults of the configuration`() throws {
        let rows = try Self.rows().filter { $0.section != "upload.destinations.NAME" }
        let values = rows.compactMap(\.value)
        #expect(values.count > 15)
        var lines: [String] = []
        var section = ""
        for row in rows {
            if row.section != section { lines.append("[\(row.section)]") }
            section = row.section
            if let value = row.value { lines.append("\(row.key) = \(value)") }
        }
        let text = lines.joined(separator: "\n") + "\n"
        #expect(try Configuration.parse(text: text, path: "c") == Configuration(), "\(text)")
    }
}
