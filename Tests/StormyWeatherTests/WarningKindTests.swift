import Foundation
import Testing

@testable import StormyWeather

/// Tests which kinds of warnings are part of a storm, and the texts of warnings.
@Suite struct WarningKindTests {
    // MARK: The rule

    private let noon = Date(timeIntervalSince1970: 1_782_900_000)

    private func judged(_ hazard: AlertHazard, _ severity: CAPSeverity? = .severe, event: String = "X") -> Assessment {
        let info = AlertInfo(
            event: event, hazard: hazard, severity: severity, from: noon, until: noon + 7200, issuer: "DWD", areas: [],
            texts: AlertTexts(headline: "Head", description: "Text", instruction: nil))
        return StormRule().assess(
            Forecast(hours: (0..<30).map { ForecastHour(start: noon + Double($0) * 3600, weatherCode: 3, precipitationMM: 0) }),
            alerts: AlertBook([AlertMessage(identifier: "a", sent: noon, infos: [info])]).events(at: nil, language: nil),
            now: noon)
    }

    @Test(arguments: AlertHazard.allCases) func `a severe warning of a kind counts or is ignored with its kind`(
        _ hazard: AlertHazard
    ) {
        let assessment = judged(hazard)
        let counted: Set<AlertHazard> = [.thunderstorm, .wind, .flood, .rain, .snow, .weather]
        #expect(assessment.isStormy == counted.contains(hazard))
        let reason = (assessment.reasons + (assessment.unconfirmed ?? []))[0]
        #expect(reason.hazard == hazard && reason.texts?.headline == "Head")
        #expect((reason.ignoredHazard == nil) == counted.contains(hazard))
        if reason.ignoredHazard != nil { #expect(StormRule().words(notCounting: reason, second: nil) == "severe") }
        #expect(judged(hazard, .moderate).isStormy == false && judged(hazard, nil).isStormy == false)
        #expect(!hazard.name.isEmpty)
    }

    @Test func `a warning below the chosen severity names the severity that counts`() throws {
        let reason = try #require(judged(.flood, .moderate).unconfirmed?.first)
        #expect(StormRule().words(notCounting: reason, second: nil) == "moderate, but the configured minimum is severe")
    }

    /// Compares the page in the documentation with the kinds that count. If `WRITE_TABLES=1` is set, the test writes the page.
    @Test func `the page names the kinds that count`() throws {
        let rows = AlertHazard.allCases.map { "| \($0.name) | \($0.isStorm ? "**counts**" : "ignored") |" }
        let page = """
            # Which warnings count

            Lists the kinds of official warnings that count as a storm, even if the forecast shows no storm. Also describes how Stormy finds the kind of a warning.

            ## Overview

            A warning counts as a storm if the severity of the warning is at least `alert_severity`, and if the table shows that the kind of the warning counts.
            Stormy finds the kind of a warning with the rules in this list, and begins with the first rule:

            1. If all areas of a warning are at sea, the kind is "at sea". A zone of the US service ("AMZ650"), a domain of MET Norway ("marine") or
               the name of an area ("Coastal waters") shows that the area is at sea. An area whose name also names land ("Grenada and its waters") is not
               at sea.
            2. Stormy next checks the codes of the warning, because codes are equal in every language. Stormy reads OASIS event terms ("OET-159"), SAME codes
               ("TOR"), P-VTEC codes ("SVW"), the code `awareness_type` of MeteoAlarm, and the codes `II` and `GROUP` of the German weather service (DWD).
               Stormy also reads the event types of the Chinese weather service (CMA), and the event terms of Canada and Taiwan ("winterStorm").
            3. Stormy next checks the CAP category of the warning. If the category is not "Met" (weather), the word "storm" alone does not make the warning
               count as a storm. Stormy ignores an unknown category.
            4. Stormy next checks the words of the event, in about forty languages. If the words name a hazard on land, the warning counts, even if the text
               also contains a word for the sea. The words of the headline can make a warning count, but cannot make Stormy ignore a warning. The reason is
               that the name of a place in the headline can contain a word such as "coast" or "hot".
            5. Any other warning of the category "Met" has the kind "\(AlertHazard.weather.name)".

            A test writes this page with the command `WRITE_TABLES=1 swift test --filter WarningKindTests`.

            | Kind | |
            | --- | --- |
            \(rows.joined(separator: "\n"))

            """
        let file = URL(filePath: #filePath).deletingLastPathComponent()
            .appending(path: "../../Sources/Stormy/StormyWeather/StormyWeather.docc/Warnings.md").standardized
        if ProcessInfo.processInfo.environment["WRITE_TABLES"] != nil { return try Data(page.utf8).write(to: file) }
        #expect(try String(contentsOf: file, encoding: .utf8) == page, "WRITE_TABLES=1 writes the page again")
    }

    @Test(
        arguments: [
            ("Hitzewarnung", .heat), ("Hőségriasztás", .heat), ("Kuumavaroitus", .heat), ("Vlna horka", .heat),
            ("Toplinski val", .heat), ("Cuaca panas", .heat), ("Aşırı sıcak", .heat), ("Hittewaarschuwing", .heat),
            ("Toplotni talas", .heat), ("Горещини", .heat), ("Nebelwarnung", .fog),
            ("Sumuvaroitus", .fog), ("Frostwarnung", .cold), ("Pakkasvaroitus", .cold), ("霧", .fog), ("Gelo", .cold),
            ("Umidade Baixa", .drought), ("Fenómenos costeros", .coastal), ("Высокие волны", .coastal), ("Волна холода", .cold),
            ("Gale warning for shipping", .marine), ("Windwarnung", .wind), ("Hitzegewitter", .thunderstorm),
            ("Neve e gelo", .snow), ("Formação de gelo", .snow),
        ] as [(String, AlertHazard)]) func `heat, fog and waves without a code do not count`(
            _ event: String, _ hazard: AlertHazard
        ) throws
    {
        #expect(try HazardTests().info(event).hazard == hazard)
        #expect(try HazardTests().info(event.lowercased()).hazard == hazard)
    }

    // MARK: Texts

    @Test(arguments: [
        ("Tornado Warning", "Tornado Warning"), ("Flood Watch", "Flood Watch"), ("Unwetterwarnung", "Unwetterwarnung"),
        ("Alerte orages", "Alerte orages"), ("Aviso de chuvas", "Aviso de chuvas"), ("暴雨预警", "暴雨预警"),
        ("Storm", "warning: Storm"), ("STARKES GEWITTER", "warning: STARKES GEWITTER"),
    ]) func `the word "warning" is not doubled`(_ event: String, _ phrase: String) throws {
        let reason = try #require(judged(.wind, event: event).reasons.first)
        #expect(reason.detail == phrase)
        #expect(reason.explanation(in: .metric) == "\(phrase), severe: DWD")
        let body = StormText.body([reason], timeZone: .gmt, reader: .gmt, locale: Locale(identifier: "en_GB"), units: .metric)
        #expect(body.lowercased().hasPrefix(phrase.lowercased() + " "))
    }

    @Test func `the most severe warning comes first in a notification`() {
        func reason(_ event: String, _ peak: Double, from hours: Double) -> StormReason {
            StormReason(kind: .alert, peak: peak, from: noon + hours * 3600, until: noon + 20 * 3600, event: event)
        }
        let reasons = [reason("Wind", 3, from: 0), reason("Tornado", 4, from: 9), reason("Rain", 3, from: 1)]
        let body = StormText.body(reasons, timeZone: .gmt, reader: .gmt, locale: Locale(identifier: "en_GB"), units: .metric)
        let places = ["Tornado", "Wind", "Rain"].compactMap { body.range(of: $0, options: .caseInsensitive)?.lowerBound }
        #expect(places.count == 3 && places == places.sorted(), "\(body)")
    }

    @Test func `the headline of the most severe warning follows the body of a notification`() {
        func reason(_ event: String, _ peak: Double, _ headline: String?) -> StormReason {
            StormReason(
                kind: .alert, peak: peak, from: noon, until: noon + 1, event: event,
                texts: AlertTexts(headline: headline, description: "D", instruction: nil))
        }
        #expect(StormText.headline([reason("A", 3, "First"), reason("B", 4, "Second")]) == "Second")
        #expect(StormText.headline([reason("Storm Warning", 3, "STORM WARNING")]) == nil, "the headline only repeats the kind")
        #expect(StormText.headline([reason("A", 3, nil)]) == nil && StormText.headline([]) == nil)
        #expect(StormText.headline([StormReason(kind: .gusts, peak: 90, from: noon, until: noon + 1)]) == nil)
    }

    @Test func `the texts of a warning are read, cleaned and limited`() throws {
        let hostile = "One\u{1B}[31m\n\n\tline\u{202E} \u{0}end"
        let texts = try #require(
            AlertTexts(headline: hostile, description: String(repeating: "long ", count: 9_999), instruction: " \n"))
        #expect(texts.headline == "One [31m line end" && texts.instruction == nil)
        #expect(texts.description?.count == AlertTexts.longestDescription + 1, "and an ellipsis")
        #expect(AlertTexts(headline: "", description: nil, instruction: "\u{200B}") == nil)
        let combined = try #require(
            AlertTexts(headline: "a" + String(repeating: "\u{301}", count: 100_000), description: nil, instruction: nil))
        #expect((combined.headline?.utf8.count ?? 0) < 10_000)
        let read = try HazardTests().info("Flood", headline: "Flood &amp; rain\nsoon")
        #expect(read.texts?.headline == "Flood & rain soon" && read.texts?.description == nil)
        let us = try #require(AlertService.nws.read(fixture("nws_alerts"), status: 200, now: .now).messages.first?.infos.first)
        #expect(us.texts?.headline?.hasPrefix("Flood Watch issued December 20 at 1:34PM PST") == true)
        #expect(us.texts?.description?.contains("* Through Sunday morning * Rainfall") == true)
        let german = try AlertService.brightSky.read(fixture("brightsky_alerts"), status: 200, now: .now).messages[0].infos
        #expect(german.map { $0.texts?.headline } == ["Official WARNING of FROST", "Amtliche WARNUNG vor FROST"])
    }

    @Test func `a warning with huge codes, names and many areas is read`() throws {
        let long = String(repeating: "storm ", count: 20_000)
        let found = try HazardTests().info(long, headline: long, codes: [("OET:v1.2", "OET-" + long), ("x", long)], area: long)
        #expect(found.hazard == .wind && found.event.count <= 81)
        let sea = (0..<501).map { _ in ("UGC", "ANZ335") }
        #expect(try HazardTests().info("Tornado", geocodes: sea).hazard == .marine)
        #expect(try HazardTests().info("Tornado", geocodes: sea + [("UGC", "NYZ072")]).hazard == .wind, "one area on land")
    }

    @Test func `a warning and a reason that an earlier version stored are read`() throws {
        let stored = #"{"event":"E","hazard":"other","from":0,"until":1,"issuer":"I","areas":[]}"#
        let old = try JSONDecoder().decode(AlertInfo.self, from: Data(stored.utf8))
        #expect(old.hazard == .other && old.texts == nil)
        let reason = #"{"kind":"alert","peak":3,"from":0,"until":1,"event":"E"}"#
        #expect(try JSONDecoder().decode(StormReason.self, from: Data(reason.utf8)).ignoredHazard == nil)
        let new = judged(.snow)
        #expect(try JSONDecoder().decode(Assessment.self, from: JSONEncoder().encode(new)) == new)
    }
}
