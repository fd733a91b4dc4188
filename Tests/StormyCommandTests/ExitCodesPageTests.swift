import BackgroundCommands
import Foundation
import Testing

@testable import StormyCommand

/// Compares the page of the exit codes with the list that `stormy help exit-codes` prints.
@Suite struct ExitCodesPageTests {
    private static func rows() throws -> [String] {
        let page = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .appending(path: "../../Sources/Stormy/StormyWeather/StormyWeather.docc/ExitCodes.md").standardized
        return try String(contentsOf: page, encoding: .utf8).split(separator: "\n").compactMap { line in
            line.prefixMatch(of: /\| (\d+) \| ([^|]+) \|/).map { "\($0.1) \($0.2)" }
        }
    }

    @Test func `the page lists every exit code with its meaning`() throws {
        #expect(try Self.rows() == ExitStatus.meanings.map { code, meaning in "\(code) \(meaning)" })
    }
}
