import BackgroundRuntime
import Testing

@Suite struct PersonLanguageTests {
    @Test(arguments: [
        (["LANG": "de_AT.UTF-8"], "de-AT,de;q=0.9"), (["LANG": "de_AT.UTF-8", "LC_ALL": "fr_FR"], "fr-FR,fr;q=0.9"),
        (["LANG": "en_GB.UTF-8", "LANGUAGE": "sv:de_DE:en"], "sv,de-DE;q=0.9,de;q=0.8,en;q=0.7,en-GB;q=0.6"),
        (["LANG": "C.UTF-8", "LANGUAGE": "de"], "en"), ([:], "en"), (["LANG": "nonsense!!"], "en"), (["LANG": "de@euro"], "de"),
    ])
    func `the Accept-Language header follows from the environment`(_ environment: [String: String], _ expected: String) {
        #expect(UserLocale.acceptLanguage(in: environment) == expected)
    }

    /// For every environment, the value must be a valid header of one line.
    @Test func `an invalid environment adds no line break, colon or null byte to the header`() {
        let text = UserLocale.acceptLanguage(in: ["LANG": "de\r\nX-Evil: 1", "LANGUAGE": "en;q=9,\u{0}:de"])
        #expect(!text.contains { $0.isNewline || $0 == "\0" || $0 == ":" })
    }
}
