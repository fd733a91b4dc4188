import Foundation
import ServerScripts
import Testing

/// Tests the texts and the kinds of official warnings in commands and notifications.
@Suite(.timeLimit(.minutes(30))) struct WarningTextTests {
    /// Runs a test in Miami with a calm forecast. For this place, Stormy requests warnings from the US service.
    private func play(_ warnings: [[String: Any]], _ body: @Sendable (VirtualHome) async throws -> Void) async throws {
        let answer = try JSONSerialization.data(withJSONObject: ["features": warnings.map { ["properties": $0] }])
        let list = String(decoding: answer, as: UTF8.self)
        try await VirtualHome.play("contact = \"me@example.org\"") { home in
            home.server.route(nil, "*", .status(404))
            home.serveCalm()
            home.server.route("GET", "/alerts/active*", .json(Self.dated(list, now: home.now)))
            #expect(try await home.stormy("place", "add", "Here", "25.76,-80.19", "--no-sync").status == 0)
            try await body(home)
        }
    }

    private static func dated(_ list: String, now: Date) -> String {
        func time(_ hours: Double) -> String { now.addingTimeInterval(hours * 3600).formatted(.iso8601) }
        return list.replacing("SENT", with: time(-0.1)).replacing("ONSET", with: time(2)).replacing("ENDS", with: time(5))
    }

    private static func warning(_ event: String, _ more: [String: Any] = [:]) -> [String: Any] {
        let warning: [String: Any] = [
            "id": event, "event": event, "sent": "SENT", "onset": "ONSET", "ends": "ENDS", "status": "Actual",
            "messageType": "Alert", "category": "Met", "severity": "Severe", "senderName": "NWS Miami", "areaDesc": "Miami-Dade",
        ]
        return warning.merging(more) { $1 }
    }

    private static var tornado: [String: Any] {
        let texts = [
            "headline": "Tornado Warning issued by NWS Miami <b>", "description": "A tornado is\n\nnear \u{1B}[31mDoral.",
            "instruction": "TAKE COVER NOW!",
        ]
        return warning("Tornado Warning", texts)
    }

    @Test func `check prints the texts of a warning only if the user wants them`() async throws {
        try await play([Self.tornado]) { home in
            let short = try await home.stormy("check").output
            #expect(
                short.contains("\n  Tornado Warning ") && short.contains("  Because: Tornado Warning, severe: NWS Miami.\n"),
                "\(short)")
            #expect(!short.contains("Doral") && !short.contains("arning: Tornado"))
            for option in ["-v", "--verbose"] {
                let long = try await home.stormy("check", option).output
                #expect(
                    long.contains(
                        """
                          Because: Tornado Warning, severe: NWS Miami.
                            Tornado Warning issued by NWS Miami <b>
                            A tornado is near [31mDoral.
                            What to do: TAKE COVER NOW!

                        """), "\(long)")
            }
        }
    }

    @Test func `the JSON of check has the kind and the texts of a warning`() async throws {
        try await play([Self.tornado, Self.warning("Gale Warning")]) { home in
            let row = try #require(try await home.rows("check").first)
            let reason = try #require((row["reasons"] as? [[String: Any]])?.first)
            #expect(Set(reason.keys) == ["kind", "detail", "from", "until", "source", "key", "warning"])
            #expect(
                reason["warning"] as? [String: String] == [
                    "event": "Tornado Warning", "hazard": "wind", "headline": "Tornado Warning issued by NWS Miami <b>",
                    "description": "A tornado is near [31mDoral.", "instruction": "TAKE COVER NOW!",
                ])
            let ignored = try #require((row["unconfirmed"] as? [[String: Any]])?.first?["warning"] as? [String: Any])
            #expect(ignored["hazard"] as? String == "marine" && ignored["headline"] is NSNull, "\(ignored)")
        }
    }

    @Test func `the notification has the headline, and the report has all texts`() async throws {
        try await play([Self.tornado]) { home in
            try await home.stormy("schedule")
            #expect(try await home.check().outcome == .completed)
            let body = try #require(home.driver.notifications.shown.first?.body)
            #expect(body.hasPrefix("Tornado Warning ") && body.hasSuffix(".\nTornado Warning issued by NWS Miami <b>"), "\(body)")
            let report = try await home.stormy("report", "-o", "-").output
            #expect(report.contains("<p>Tornado Warning issued by NWS Miami &lt;b&gt;</p>"))
            #expect(
                report.contains("<p>A tornado is near [31mDoral.</p>") && report.contains("<p>What to do: TAKE COVER NOW!</p>"))
        }
    }

    /// The kinds of these warnings are not treated as a storm.
    @Test func `ignored warnings are listed by kind`() async throws {
        let warnings = [
            Self.warning("Dense Fog Advisory", ["severity": "Moderate"]),
            Self.warning("Storm Warning", ["areaDesc": "Coastal waters"]),
            Self.warning("Extreme Heat Warning", ["headline": "It is hot"]),
            Self.warning("Gale Warning", ["severity": "Unknown"]),
            Self.warning("Wind Advisory", ["severity": "Moderate"]),
        ]
        try await play(warnings) { home in
            let said = try await home.stormy("check", "-v").output
            let lines = said.split(separator: "\n").filter { $0.contains("NWS Miami") || $0.contains("hot") }
            let starts = [
                "  Not counted: Wind Advisory from ", "  Ignored (at sea): Storm Warning from ",
                "  Ignored (at sea): Gale Warning from ",
                "  Ignored (heat): Extreme Heat Warning from ", "    It is hot", "  Ignored (fog): Dense Fog Advisory from ",
            ]
            let ends = [
                ", moderate, but the configured minimum is severe: NWS Miami.", ", severe: NWS Miami.",
                ", of unknown severity: NWS Miami.",
                ", severe: NWS Miami.", "It is hot", ", moderate: NWS Miami.",
            ]
            #expect(lines.count == starts.count, "\(said)")
            for (line, ends) in zip(lines, zip(starts, ends)) {
                #expect(line.hasPrefix(ends.0) && line.hasSuffix(ends.1), "\(line)")
            }
            #expect(said.contains("Here: calm."))
        }
    }

    @Test func `a weather warning of an unknown kind is shown`() async throws {
        try await play([Self.warning("Xyzzy Event")]) { home in
            try await home.stormy("schedule")
            #expect(try await home.check().outcome == .completed)
            #expect(home.shown == ["Severe storm expected in Here"])
            #expect(try await home.stormy("check").output.contains("Because: warning: Xyzzy Event, severe: NWS Miami."))
        }
    }
}
