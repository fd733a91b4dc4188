import TransferMachines
import Testing

@testable import StormyConfiguration

/// What `stormy config` prints is what the parser reads.
@Suite struct ConfigurationTemplateTests {
    @Test func itIsTheDefaults() throws {
        #expect(try Configuration.parse(text: Configuration.template, path: "t") == Configuration())
    }

    @Test func itsExamplesAreRightAndNoKeyIsMissing() throws {
        let whole = Configuration.template.replacing("#: ", with: "")
        let parsed = try Configuration.parse(text: whole, path: "t")
        #expect(Set(parsed.upload.destinations.values.map(\.kind)) == Set(UploadKind.protocols))
        for key in ConfigurationParser.allKeys { #expect(whole.contains("\(key) = ") || whole.contains(" \(key)"), "\(key)") }
    }

    /// Help is wrapped at 80 columns, and indents it.
    @Test func itsLinesAreShort() {
        for line in Configuration.template.split(separator: "\n") { #expect(line.count <= 76, "\(line)") }
    }

    @Test func aServiceThatIsNotKnownIsRefusedWithItsLine() throws {
        let error = #expect(throws: ConfigurationError.self) {
            try ConfigurationParser(text: "[weather]\nprovider = \"mws\"\n", path: "c")
        }
        #expect(error.map { "\($0)" }?.hasPrefix("c:2:1: \"weather.provider\"") == true, "\(String(describing: error))")
    }
}
