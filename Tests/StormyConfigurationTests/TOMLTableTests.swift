@testable import StormyConfiguration
import Testing

@Suite struct TOMLTableTests {
    private func at(_ line: Int, _ column: Int) -> TOMLTable.Place { .init(line: line, column: column) }

    /// Returns the position of each key, by the path of the key.
    private func places(_ text: String) throws -> [[String]: TOMLTable.Place] {
        var found: [[String]: TOMLTable.Place] = [:]
        func walk(_ table: TOMLTable, _ path: [String]) {
            for (key, entry) in table.entries {
                found[path + [key]] = entry.place
                if case .table(let below) = entry.value { walk(below, path + [key]) }
            }
        }
        walk(try TOMLTable.read(text), [])
        return found
    }

    @Test func `keys are found between strings and comments`() throws {
        let positions = try places(
            #"""
            # a = 1
            top = "x # = [not] \" a = 2"

            [weather]   # [storm]
              provider = 'its = not' # gusts_kmh = 1
            text = """
            fake = 1 "" \"""
            [fake]
            """""
            lines = '''
            other = 2'''
            list = [ "a]", # comment ] = 3
              { inner = 1 }, [2] ]
            after = 2026-01-01
            [ upload . destinations."my home" ]
            "ur l" = {a.b = 1, c = { d = "}" } }
            dotted . key.'x y' = 2
            """#)
        #expect(positions[["a"]] == nil)
        #expect(positions[["top"]] == at(2, 1))
        #expect(positions[["weather"]] == at(4, 2))
        #expect(positions[["weather", "provider"]] == at(5, 3))
        #expect(positions[["weather", "fake"]] == nil)
        #expect(positions[["fake"]] == nil)
        #expect(positions[["weather", "lines"]] == at(10, 1))
        #expect(positions[["weather", "other"]] == nil)
        #expect(positions[["weather", "list"]] == at(12, 1))
        #expect(positions[["weather", "after"]] == at(14, 1))
        #expect(positions[["upload"]] == at(15, 3))
        #expect(positions[["upload", "destinations", "my home"]] == at(15, 25))
        #expect(positions[["upload", "destinations", "my home", "ur l", "a", "b"]] == at(16, 13))
        #expect(positions[["upload", "destinations", "my home", "ur l", "c", "d"]] == at(16, 26))
        #expect(positions[["upload", "destinations", "my home", "dotted", "key", "x y"]] == at(17, 14))
    }

    @Test func `lines that end with carriage returns are counted`() throws {
        let positions = try places("\u{FEFF}a = 1\r\n\r\n[b]\r\nc = 'ü' \r\nd = 2")
        #expect(positions[["a"]] == at(1, 1))
        #expect(positions[["b", "c"]] == at(4, 1))
        #expect(positions[["b", "d"]] == at(5, 1))
    }

    @Test func `reading random text ends without a crash`() {
        let pieces = ["a", "=", "[", "]", "{", "}", "\"", "'", "\\", "\n", ".", ",", "#", " ", "\"\"\"", "'''", "]]", "1"]
        for _ in 0..<5000 {
            _ = try? TOMLTable.read((0..<Int.random(in: 0...30)).compactMap { _ in pieces.randomElement() }.joined())
        }
    }
}
