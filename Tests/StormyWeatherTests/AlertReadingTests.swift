import Foundation
import StormyWeather
import Testing

/// Documents that are not written like most.
@Suite struct AlertReadingTests {
    private let noon = Date(timeIntervalSince1970: 1_782_907_200)

    /// A document that was sent at noon (2026-07-01T12:00:00Z).
    private func read(
        _ infos: String, identifier: String = "a", sender: String = "met@example", sent: String = "2026-07-01T12:00:00Z",
        kind: String = "Alert", references: String = ""
    ) throws -> AlertMessage {
        let text = """
            <alert><identifier>\(identifier)</identifier><sender>\(sender)</sender><sent>\(sent)</sent><status>Actual</status>
            <msgType>\(kind)</msgType><references>\(references)</references>\(infos)</alert>
            """
        return try #require(try CAPDocument.parse(Data(text.utf8)))
    }

    private func info(
        _ event: String, _ severity: String = "Severe", language: String? = nil, type: String? = nil, times: String = "",
        area: String = ""
    ) -> String {
        let parameter = type.map { "<parameter><valueName>awareness_type</valueName><value>\($0)</value></parameter>" } ?? ""
        return """
            <info>\(language.map { "<language>\($0)</language>" } ?? "")<category>Met</category><event>\(event)</event>
            <severity>\(severity)</severity>\(times)\(parameter)\(area)</info>
            """
    }

    private func seen(_ message: AlertMessage, language: String? = "en", at place: Coordinates? = nil) -> [AlertInfo] {
        AlertBook([message]).events(at: place, language: language).flatMap(\.infos)
    }

    // MARK: Languages

    @Test func `a hazard in another language is not hidden by a text in the language of the reader`() throws {
        let pairs = [
            info("Wind advisory", "Minor", language: "en") + info("Cagilaba flood", "Extreme", language: "fj"),
            info("Wind", "Moderate", language: "en-GB", type: "1; Wind")
                + info("Gewitter", "Extreme", language: "de-AT", type: "3; Thunderstorm"),
            info("Cagilaba flood", "Minor", language: "fj") + info("Gale"),
            info("Gale", "Unknown", language: "en") + info("Cagilaba flood", "Extreme", language: "fj"),
        ]
        for pair in pairs {
            for language in ["en", "fj", "de", nil] {
                #expect(seen(try read(pair), language: language).count == 2, "\(pair)")
            }
        }
    }

    @Test func `a text without a language counts before a text in a foreign language`() throws {
        let message = try read(info("Cagilaba wind", language: "fj") + info("Gale"))
        #expect(seen(message).map(\.event) == ["Gale"] && seen(message, language: "fj").map(\.event) == ["Cagilaba wind"])
        let english = try read(info("Gale") + info("Storm", language: "en-GB"))
        #expect(seen(english, language: "de").map(\.event) == ["Storm"])
        #expect(seen(try read(info("Bagyo", language: "fil") + info("Gale")), language: "fi").map(\.event) == ["Gale"])
    }

    @Test func `a text without known words has the kind of its translation`() throws {
        let heat = try read(info("Extreme heat", language: "en") + info("Abcdef", language: "te-IN"))
        for (language, event) in [("en", "Extreme heat"), ("te", "Abcdef")] {
            let infos = seen(heat, language: language)
            #expect(infos.map(\.event) == [event] && infos.map(\.hazard) == [.heat])
        }
        // Two kinds, or another one in the same language: the kind stays unknown.
        let two = try read(info("Heat", language: "en") + info("Fog", language: "en") + info("Abcdef", language: "te"))
        #expect(Set(seen(two).map(\.hazard)) == [.heat, .fog, .weather])
        let own = try read(info("Heat", language: "te") + info("Abcdef", language: "te"))
        #expect(Set(seen(own).map(\.hazard)) == [.heat, .weather])
    }

    // MARK: References

    @Test(arguments: [
        "IMD New Delhi,R1,TIME IMD New Delhi,R2,TIME", "IMD New Delhi, R1, TIME IMD New Delhi, R2, TIME",
        "IMD New Delhi,R1 IMD New Delhi,R2", "IMD New Delhi,R1,TIME,IMD New Delhi,R2,TIME", "IMD New Delhi,R1,IMD New Delhi,R2",
        "R1 R2", "R1,TIME R2,TIME", "imd new\u{A0}delhi,R1,TIME\nIMD NEW DELHI,R2,TIME", "\"IMD New Delhi\",R1,TIME R2",
        "IMD New Delhi,R1,yesterday IMD New Delhi,R2,today",
    ]) func `references in other forms are read`(_ text: String) throws {
        let references = text.replacing("TIME", with: "2026-07-01T12:00:00+05:30")
        let cancellation = try read("", identifier: "C", sender: "IMD New Delhi", kind: "Cancel", references: references)
        #expect(
            Set(cancellation.references).isSuperset(of: ["imd new delhi,R1", "imd new delhi,R2"]), "\(cancellation.references)")
        let warnings = try ["R1", "R2", "R3"].map { try read(info("Gale"), identifier: $0, sender: "IMD  New Delhi") }
        let events = AlertBook(warnings + [cancellation]).events(at: nil, language: nil)
        #expect(events.count { $0.state == .standing && !$0.infos.isEmpty } == 1, "\(references)")
    }

    @Test func `references to other senders are read in other forms`() throws {
        let time = "2026-07-01T12:00:00Z"
        for text in [
            "Met Office,R1,\(time) Met Office,R2,\(time)", "met office, R1, \(time), Met Office, R2, \(time)",
            "Met Office,R1,\(time),Met Office,R2",
        ] {
            #expect(try read("", references: text).references == ["met office,R1", "met office,R2"], "\(text)")
        }
        #expect(try read("", references: "a@b,R1 c@d,R2").references == ["a@b,R1", "c@d,R2"])
        #expect(try read("", references: "W@X,R1,\(time) v@x,,\(time)").references == ["w@x,R1"])
    }

    @Test(arguments: ["", "none", "N/A", "-", "0", "2026-07-01T12:00:00Z"])
    func `a placeholder is not a reference and the cancellation is reported`(_ text: String) throws {
        let cancellation = try read("", kind: "Cancel", references: text)
        #expect(cancellation.references.isEmpty)
        #expect(
            AlertBook([cancellation]).unusedReferences(of: [cancellation], now: noon) == [
                "1 of its cancellations have no readable reference, and are not used"
            ])
    }
}
