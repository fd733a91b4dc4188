import TransferMachines
import Testing

@testable import StormyConfiguration

/// Tests the template that `stormy config` prints.
@Suite struct ConfigurationTemplateTests {
    @Test func `the template gives the defaults`() throws {
        #expect(try Configuration.parse(text: Configuration.template, path: "t") == Configuration())
    }

    @Test func `the examples in the template are valid, and no key is missing`() throws {
        let whole = Configuration.template.replacing("#: ", with: "")
        let parsed = try Configuration.parse(text: whole, path: "t")
        #expect(Set(parsed.upload.destinations.values.map(\.kind)) == Set(UploadKind.protocols))
        for key in ConfigurationParser.allKeys { #expect(whole.contains("\(key) = ") || whole.contains(" \(key)"), "\(key)") }
    }

    /// The help indents the template, and wraps lines at 80 columns.
    @Test func `lines of the template have at most 76 characters`() {
        for line in Configuration.template.split(separator: "\n") { #expect(line.count <= 76, "\(line)") }
    }

    @Test func `an unknown weather service is reported with its line`() throws {
        let error = #expect(throws: ConfigurationError.self) {
            try ConfigurationParser(text: "[weather]\nprovider = \"mws\"\n", path: "c")
        }
        #expect(error.map { "\($0)" }?.hasPrefix("c:2:1: \"weather.provider\"") == true, "\(String(describing: error))")
    }
}
