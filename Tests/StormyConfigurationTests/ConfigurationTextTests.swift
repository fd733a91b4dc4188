import Testing

@testable import StormyConfiguration

/// Tests of changes of the configuration's text.
@Suite struct ConfigurationTextTests {
    private static let home = "[upload.destinations.home]\nkind = \"webdav\"\nurl = \"https://h/\"\n"

    private static func destination(_ url: String = "https://n/") -> Configuration.Destination {
        var destination = Configuration.Destination(kind: .nextcloud, url: url)
        destination.user = "me \"and\" \\you"
        destination.passwordFile = "/home/me/nas.password"
        destination.location = .keep
        return destination
    }

    @Test(arguments: [
        "", home, "# my file", "[storm]\r\ngusts_kmh = 60\r\n", "[upload]\ndefault = \"home\"\n" + home, home + "# end",
    ])
    func `a destination is added behind all other lines`(_ text: String) throws {
        let added = try ConfigurationText(text, path: "c").adding("nas", Self.destination())
        #expect(added.text.hasPrefix(text))
        let upload = try Configuration.parse(text: added.text, path: "c").upload
        var expected = Self.destination()
        expected.lines = ["[upload.destinations.nas]", "url = \"https://n/\""]
        #expect(upload.destinations["nas"] == expected)
        #expect(try added.removing("nas").text.filter { !$0.isNewline } == text.filter { !$0.isNewline })
    }

    @Test func `a removed destination takes its lines and its default, and no comment of the next table`() throws {
        let text =
            "[upload]\ndefault = \"home\" # mine\n\n" + Self.home
            + "user = \"me\"\npassword = \"p\"\n\n# the limits\n[storm]\ngusts_kmh = 60\n"
        #expect(
            try ConfigurationText(text, path: "c").removing("home").text == "[upload]\n\n# the limits\n[storm]\ngusts_kmh = 60\n")
    }

    @Test(arguments: [
        "[upload.destinations]\nhome = { kind = \"put\", url = \"https://h/\" }\n",
        "upload.destinations.home.kind = \"put\"\nupload.destinations.home.url = \"https://h/\"\n",
        "[upload]\ndestinations.home.kind = \"put\"\ndestinations.home.url = \"https://h/\"\n",
    ]) func `a destination in another form is not changed`(_ text: String) throws {
        #expect(throws: ConfigurationText.Failure.otherForm(name: "home", path: "c")) {
            try ConfigurationText(text, path: "c").removing("home")
        }
    }

    @Test func `a text that looks like the section is not taken for the section`() throws {
        let text = "[weather]\ncontact = '''[upload.destinations.home]'''\n" + Self.home
        let removed = try ConfigurationText(text, path: "c").removing("home").text
        #expect(removed == "[weather]\ncontact = '''[upload.destinations.home]'''\n")
    }

    @Test func `a name that exists and a destination that is not valid are refused`() {
        #expect(throws: (any Error).self) { try ConfigurationText(Self.home, path: "c").adding("home", Self.destination()) }
        #expect(throws: (any Error).self) { try ConfigurationText("", path: "c").adding("nas", Self.destination("ftp://h/")) }
        #expect(throws: (any Error).self) { try ConfigurationText("", path: "c").adding("a b", Self.destination()) }
    }

    @Test(arguments: [("https://h/", true), ("https://u:p@h/", false), ("https://h/?signature=1", false)])
    func `the line of an address is known unless it contains a secret`(_ url: String, _ isKnown: Bool) throws {
        let text = "[upload.destinations.home]\nurl = '\(url)' # mine\nkind = \"put\"\n"
        let lines = try Configuration.parse(text: text, path: "c").upload.destinations["home"]?.lines
        #expect(lines == ["[upload.destinations.home]"] + (isKnown ? ["url = '\(url)' # mine"] : []))
        #expect(ConfigurationText(text, path: "c").hasCredential == !isKnown)
    }

    @Test func `a file with an inline table of destinations is not changed`() {
        let text = "[upload]\ndestinations = { home = { kind = \"put\", url = \"https://h/\" } }\n"
        #expect(throws: ConfigurationText.Failure.otherEffect(path: "c")) {
            try ConfigurationText(text, path: "c").adding("nas", Self.destination())
        }
    }

    @Test func `a text that becomes too large is refused`() {
        let text = "#" + String(repeating: "x", count: (1 << 20) - 30) + "\n"
        #expect(throws: ConfigurationText.Failure.tooLarge(path: "c")) {
            try ConfigurationText(text, path: "c").adding("nas", Self.destination())
        }
    }

    @Test(arguments: [
        ("[upload.destinations.home]", "[upload.destinations.home]"),
        ("  [ upload.destinations . \"home\" ] # nas\r", "[ upload.destinations . \"home\" ] # nas"),
    ]) func `the line that begins a destination is known`(_ line: String, _ section: String) throws {
        let text = "# first\n" + line + "\nkind = \"put\"\nurl = \"https://h/\"\n"
        #expect(try Configuration.parse(text: text, path: "c").upload.destinations["home"]?.section == section)
    }
}
