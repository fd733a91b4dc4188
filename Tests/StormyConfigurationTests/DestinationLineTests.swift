import Testing

@testable import StormyConfiguration

/// Tests the keys `location` and `ca_file` of a destination.
@Suite struct DestinationLineTests {
    private static func parse(_ lines: String, before: String = "", url: String = "https://h/") throws -> Configuration.Upload {
        try Configuration.parse(
            text: before + "[upload.destinations.home]\nkind = \"webdav\"\nurl = \"\(url)\"\n" + lines, path: "c"
        ).upload
    }

    @Test(arguments: Configuration.Location.allCases)
    func `a destination chooses whether photos keep their location`(_ location: Configuration.Location) throws {
        let upload = try Self.parse("location = \"\(location.rawValue)\"\n")
        #expect(upload.destinations["home"]?.location == location)
        #expect(upload.destinationsWithoutLocation.isEmpty)
    }

    @Test(arguments: ["location = \"kepp\"", "location = true", "location = \"Keep\""])
    func `another value is refused with its line`(_ line: String) {
        let error = #expect(throws: ConfigurationError.self) { try Self.parse(line + "\n") }
        #expect(
            error.map { "\($0)" }?.hasPrefix("c:4:1: \"upload.destinations.home.location\"") == true,
            "\(String(describing: error))")
    }

    @Test func `destinations without a choice are listed unless keep_location is written`() throws {
        #expect(try Self.parse("").destinationsWithoutLocation == ["home"])
        for value in [true, false] {
            let upload = try Self.parse("", before: "[upload]\nkeep_location = \(value)\n")
            #expect(upload.keepLocation == value && upload.destinationsWithoutLocation.isEmpty)
        }
    }

    @Test func `path is read, and refused for other kinds, other words and folders outside the address`() throws {
        #expect(try Self.parse("path = \"{year}/{month}/\"\n").destinations["home"]?.path == "{year}/{month}/")
        for path in ["/{year}", "../x", "a/./b", "{hour}", "{year", "a?b", "a\\\\b"] {
            #expect(throws: ConfigurationError.self, "\(path)") { try Self.parse("path = \"\(path)\"\n") }
        }
    }

    @Test func `ca_file is read, and refused for an address without encryption`() throws {
        #expect(try Self.parse("ca_file = \"~/ca.pem\"\n").destinations["home"]?.caFile == "~/ca.pem")
        #expect(throws: ConfigurationError.self) { try Self.parse("ca_file = \"/ca.pem\"\n", url: "http://h/") }
    }
}
