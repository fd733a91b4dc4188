import Foundation
import Testing

@testable import StormyWeather

/// Tests warnings with a part that cannot be read. A warning with an unreadable part is used, or its earlier state is kept. The
/// user is informed that a part of the warning cannot be read.
@Suite struct UnreadableWarningTests {
    /// The time is 2026-07-01T12:00:00Z.
    private let noon = Date(timeIntervalSince1970: 1_782_907_200)

    private func time(_ hours: Double) -> String { (noon + hours * 3600).formatted(.iso8601) }

    private func parse(
        _ info: String, sent: String? = nil, status: String? = "Actual", kind: String? = "Alert", identifier: String = "a",
        references: String = ""
    ) throws -> AlertMessage? {
        func element(_ name: String, _ text: String?) -> String { text.map { "<\(name)>\($0)</\(name)>" } ?? "" }
        let head = element("identifier", identifier) + element("sender", "s") + element("sent", sent ?? time(-1))
        let text = """
            <alert>\(head)\(element("status", status))\(element("msgType", kind))\(element("references", references))\(info)</alert>
            """
        return try CAPDocument.parse(Data(text.utf8))
    }

    private func info(
        event: String = "Tornado", severity: String? = "Severe", times: String = "", more: String = ""
    ) -> String {
        let severity = severity.map { "<severity>\($0)</severity>" } ?? ""
        return "<info><category>Met</category><event>\(event)</event>\(severity)\(times)\(more)</info>"
    }

    private func read(_ info: String, sent: String? = nil) throws -> AlertInfo {
        try #require(try parse(info, sent: sent)?.infos.first)
    }

    private func us(_ properties: [String: Any]) throws -> AlertInfo {
        let all: [String: Any] = [
            "id": "a", "event": "Flood Warning", "sent": time(-1), "messageType": "Alert", "severity": "Severe",
        ]
        let data = try JSONSerialization.data(withJSONObject: ["features": [["properties": all.merging(properties) { $1 }]]])
        return try #require(try AlertService.nws.read(data, status: 200, now: noon).messages.first?.infos.first)
    }

    private func reasons(_ message: AlertMessage, _ now: Date? = nil, _ listedAt: Date? = nil) -> [String?] {
        let events = AlertBook([message]).events(at: nil, language: nil, now: now ?? noon, listedAt: listedAt)
        return StormRule().assess(Forecast(hours: []), alerts: events, now: now ?? noon).reasons.map(\.event)
    }

    // MARK: Long hazards

    @Test(arguments: [11.0, 14, 60, 400]) func `a hazard that began long ago counts until its end`(_ days: Double) throws {
        let times = "<onset>\(time(-24 * days))</onset><expires>\(time(24 * 5))</expires>"
        let message = try #require(try parse(info(event: "Flood", times: times)))
        #expect(message.infos[0].until == noon + 5 * 86_400 && message.infos[0].doubts == nil)
        #expect(reasons(message) == ["Flood"] && reasons(message, noon + 4.9 * 86_400) == ["Flood"])
        #expect(reasons(message, noon + 5.1 * 86_400).isEmpty)
        let flood = try us(["onset": time(-24 * days), "ends": time(24 * 5)])
        #expect(flood.until == noon + 5 * 86_400 && flood.hasOpenEnd == nil)
    }

    @Test func `a long hazard whose message was also sent long ago counts until its end`() throws {
        let times = "<onset>\(time(-24 * 12))</onset><expires>\(time(24 * 5))</expires>"
        let message = try #require(try parse(info(event: "Flood", times: times), sent: time(-24 * 13)))
        #expect(message.infos[0].until == noon + 5 * 86_400 && reasons(message) == ["Flood"])
    }

    @Test func `a hazard that began long ago and has no end lasts for hours after its message`() throws {
        let message = try #require(try parse(info(times: "<onset>\(time(-24 * 30))</onset>")))
        #expect(message.infos[0].until == noon + 11 * 3600 && reasons(message) == ["Tornado"])
    }

    @Test(arguments: [101.0, 3_650, 36_500]) func `an end that is too far away is reported and counts as no end`(_ days: Double)
        throws
    {
        let message = try #require(try parse(info(times: "<expires>\(time(24 * days))</expires>")))
        let read = message.infos[0]
        #expect(read.hasOpenEnd == true && read.until == noon - 3600 + 10 * 86_400)
        #expect(
            AlertMessage.doubts(in: [message]) == [
                "1 of 1 warnings last for more than 100 days, so Stormy does not use their end"
            ])
        // The warning is valid as long as its service lists it.
        #expect(reasons(message, noon + 50 * 86_400, noon + 50 * 86_400) == ["Tornado"])
        #expect(reasons(message, noon + 50 * 86_400, noon + 20 * 86_400).isEmpty)
    }

    // MARK: Names of events

    private func parameter(_ name: String, _ value: String) -> String {
        "<parameter><valueName>\(name)</valueName><value>\(value)</value></parameter>"
    }

    @Test func `a warning without an event has the name of its headline or code`() throws {
        let headline = "<headline>Extreme tornado outbreak</headline>"
        let type = parameter("awareness_type", "1; Wind")
        let code = "<eventCode><valueName>OET:v1.2</valueName><value>OET-081</value></eventCode>"
        for event in ["", "  \n", "\u{200B}"] {
            #expect(try read(info(event: event, more: headline + type)).event == "Extreme tornado outbreak")
            #expect(try read(info(event: event, more: type)).event == "Wind")
            #expect(try read(info(event: event, more: parameter("awareness_type", "3"))).event == "thunderstorm")
            #expect(try read(info(event: event, more: code)).event == "flood")
            #expect(try read(info(event: event)).event == "Warning")
            #expect(try read(info(event: event, more: headline)).hazard == .wind)
        }
        #expect(try read(info().replacing("<event>Tornado</event>", with: headline)).event == "Extreme tornado outbreak")
        #expect(try read(info(more: headline)).event == "Tornado")
    }

    @Test func `an update without an event does not call its warning off`() throws {
        let first = try #require(try parse(info()))
        let update = try #require(
            try parse(
                info(event: "", severity: "Extreme"), sent: time(-0.5), kind: "Update", identifier: "b", references: "s,a,x"))
        let events = AlertBook([first, update]).events(at: nil, language: nil)
        #expect(events.map(\.state) == [.standing] && events.flatMap(\.infos).map(\.severity) == [.extreme])
        #expect(StormRule().assess(Forecast(hours: []), alerts: events, now: noon).reasons.map(\.event) == ["Warning"])
    }

    @Test func `warnings of other services without an event count`() throws {
        #expect(try us(["event": NSNull(), "headline": "Tornado Warning issued"]).event == "Tornado Warning issued")
        #expect(try us(["event": ""]).event == "Warning" && us(["event": "", "eventCode": ["SAME": ["TOR"]]]).hazard == .wind)
        let german = """
            {"alerts":[{"alert_id":"a","onset":"\(time(1))","event_en":"","event_code":31,"severity":"severe","headline_de":"Gewitter"}]}
            """
        let answer = try AlertService.brightSky.read(Data(german.utf8), status: 200, now: noon)
        #expect(answer.unreadable == 0 && answer.messages.first?.infos.map(\.event) == ["Gewitter"])
        let norwegian = """
            {"features":[{"properties":{"id":"a","event":"","awareness_type":"1; Wind","severity":"Severe"},
            "when":{"interval":["\(time(1))","\(time(5))"]}}]}
            """
        let wind = try AlertService.metNorway.read(Data(norwegian.utf8), status: 200, now: noon).messages.first?.infos.first
        #expect(wind?.event == "Wind" && wind?.hazard == .wind && wind?.severity == .severe)
    }

    // MARK: Status and type

    @Test(arguments: [nil, "", "Aktuell", "Real", "0"] as [String?]) func `a document without a known status is not a test`(
        _ status: String?
    ) {
        #expect(throws: WeatherError.notCAP) { try parse(info(), status: status) }
    }

    @Test(arguments: [nil, "", "Alerta", "New"] as [String?]) func `a document without a known type cannot be read`(
        _ kind: String?
    ) {
        #expect(throws: WeatherError.notCAP) { try parse(info(), kind: kind) }
    }

    @Test(arguments: ["ACTUAL", " actual "]) func `the case of a status does not count`(_ status: String) throws {
        #expect(try parse(info(), status: status, kind: "ALERT")?.infos.count == 1)
        #expect(try parse("", status: "EXERCISE", kind: nil) == nil, "a test needs no type")
    }

    @Test(arguments: ["Alert", "Update"]) func `a warning without a block cannot be read`(_ kind: String) throws {
        #expect(throws: WeatherError.notCAP) { try parse("", kind: kind) }
        #expect(try parse("", kind: "Cancel")?.kind == .cancel)
    }

    @Test func `a warning of the US service with an unknown status counts`() throws {
        #expect(try us(["status": "Aktuell"]).event == "Flood Warning" && us(["status": NSNull()]).event == "Flood Warning")
        let test = #"{"features":[{"properties":{"id":"a","status":"Exercise"}}]}"#
        let answer = try AlertService.nws.read(Data(test.utf8), status: 200, now: noon)
        #expect(answer.messages.isEmpty && answer.unreadable == 0)
    }

    // MARK: Severity

    @Test(arguments: ["Severo", "Sévère", "4", "high"]) func `a severity that cannot be read counts as severe and is reported`(
        _ severity: String
    ) throws {
        let message = try #require(try parse(info(severity: severity)))
        #expect(message.infos[0].severity == .severe && reasons(message) == ["Tornado"])
        #expect(
            AlertMessage.doubts(in: [message]) == [
                "1 of 1 warnings have no severity that Stormy can read, so Stormy uses their earlier severity, or \"severe\""
            ])
        #expect(try us(["severity": severity]).severity == .severe)
    }

    @Test(arguments: ["Unknown", "unknown", "", nil] as [String?]) func `a severity that is not known is not guessed`(
        _ severity: String?
    ) throws {
        let message = try #require(try parse(info(severity: severity)))
        #expect(message.infos[0].severity == nil && reasons(message).isEmpty && AlertMessage.doubts(in: [message]).isEmpty)
        let level = parameter("awareness_level", " 4; red; Extreme")
        #expect(try read(info(severity: severity, more: level)).severity == .extreme)
        #expect(try read(info(severity: "Moderate", more: level)).severity == .moderate)
    }

    @Test(arguments: ["Severo", "Unknown", "", nil] as [String?]) func `an update without a readable severity keeps the severity`(
        _ severity: String?
    ) throws {
        for earlier in ["Extreme", "Moderate"] {
            let first = try #require(try parse(info(severity: earlier)))
            func update(_ identifier: String, of reference: String, _ hours: Double) throws -> AlertMessage {
                try #require(
                    try parse(
                        info(severity: severity), sent: time(hours), kind: "Update", identifier: identifier,
                        references: "s,\(reference),x"))
            }
            // The second update refers to the first update, which also has no severity.
            let updates = [try update("c", of: "b", -0.2), try update("b", of: "a", -0.5)]
            let kept = AlertMessage.keepingSeverities(updates, before: [first])
            #expect(kept.map(\.identifier) == updates.map(\.identifier))
            #expect(kept.flatMap(\.infos).map(\.severity?.rawValue) == [earlier.lowercased(), earlier.lowercased()])
            #expect(
                AlertMessage.doubts(in: kept).count == 1 && AlertMessage.doubts(in: kept)[0].hasPrefix("2 of 2 warnings "))
            // The next check has only the first update.
            #expect(AlertMessage.keepingSeverities(updates, before: [kept[1]]) == kept)
        }
    }

    @Test func `another document under the same link keeps the severity`() throws {
        var first = try #require(try parse(info()))
        var second = try #require(try parse(info(severity: "Severo"), identifier: "b"))
        first.link = "/a.xml"
        #expect(AlertMessage.keepingSeverities([second], before: [first]) == [second], "another document")
        second.link = "/a.xml"
        first.infos[0].severity = .extreme
        #expect(AlertMessage.keepingSeverities([second], before: [first])[0].infos[0].severity == .extreme)
    }

    @Test func `the severity of another hazard is not kept`() throws {
        let first = try #require(try parse(info(event: "Flood")))
        let other = try #require(
            try parse(info(event: "Tornado", severity: nil), kind: "Update", identifier: "b", references: "s,a,x"))
        #expect(AlertMessage.keepingSeverities([other], before: [first]) == [other])
        let unclassified = try #require(
            try parse(info(event: "Abcdef", severity: nil), kind: "Update", identifier: "b", references: "s,a,x"))
        #expect(AlertMessage.keepingSeverities([unclassified], before: [first])[0].infos[0].severity == .severe)
    }

    @Test(
        arguments: [
            ("<urgency>Past</urgency>", "which is over according to its service"),
            ("<certainty>Unlikely</certainty>", "which is unlikely according to its service"),
            ("<responseType>AllClear</responseType>", "which reports the end of the danger"),
        ]) func `a warning without danger ends its warning and has its reason`(_ mood: String, _ words: String) throws
    {
        for severity in ["Severe", "Severo", nil] {
            let first = try #require(try parse(info()))
            let update = try #require(
                try parse(info(severity: severity, more: mood), kind: "Update", identifier: "b", references: "s,a,x"))
            #expect(AlertMessage.keepingSeverities([update], before: [first]) == [update])
            #expect(AlertMessage.doubts(in: [update]).isEmpty)
            let events = AlertBook([first, update]).events(at: nil, language: nil)
            let seen = StormRule().assess(Forecast(hours: []), alerts: events, now: noon)
            let reason = try #require(seen.unconfirmed?.first)
            #expect(seen.reasons.isEmpty && StormRule().words(notCounting: reason, second: nil) == words)
        }
    }

    @Test func `a warning and a reason keep why they are not used as written`() throws {
        let message = try #require(try parse(info(severity: "Severo", more: "<responseType>AllClear</responseType>")))
        let doubtful = try #require(try parse(info(severity: "Severo", times: "<expires>soon</expires>")))
        for message in [message, doubtful] {
            #expect(try JSONDecoder().decode(AlertMessage.self, from: JSONEncoder().encode(message)) == message)
        }
        #expect(doubtful.infos[0].doubts == [.severity, .time] && message.infos[0].noDanger == .allClear)
    }

    // MARK: Times

    /// Each argument is the offset of the service's local time from UTC, in hours. The service writes `sent` in UTC, and other
    /// times in local time.
    @Test(arguments: [-11.0, -5, 0, 5.5, 8]) func `UTC in the time of sending is not the offset of local times`(_ offset: Double)
        throws
    {
        func local(_ hours: Double) -> String { String(time(hours + offset).dropLast()) }
        let times = "<onset>\(local(1))</onset><expires>\(local(4))</expires>"
        for sent in [time(-1), time(-1).replacing("Z", with: "+00:00"), time(-1).replacing("Z", with: "-00:00")] {
            for effective in ["", "<effective>\(time(-1))</effective>"] {
                let message = try #require(try parse(info(times: effective + times), sent: sent))
                #expect(message.sent == noon - 3600 && message.hasNoOffset == true)
                #expect(message.infos[0].from <= noon + 3600 && message.infos[0].until >= noon + 4 * 3600)
                #expect(reasons(message) == ["Tornado"] && reasons(message, noon + 3.9 * 3600) == ["Tornado"])
            }
        }
    }

    @Test func `an offset of a hazard counts for its other times`() throws {
        let times = "<onset>2026-07-01T08:00:00</onset><expires>2026-07-01T11:00:00-05:00</expires>"
        let message = try #require(try parse(info(times: times)))
        #expect(message.infos[0].from == noon + 3600 && message.hasNoOffset == nil)
        let utc = try read(info(times: "<onset>2026-07-01T13:00:00</onset><expires>\(time(4))</expires>"))
        #expect(utc.from == noon + 3600 && utc.until == noon + 4 * 3600)
        let east = try read(info(times: "<onset>2026-07-01T15:00:00</onset>"), sent: "2026-07-01T13:00:00+02:00")
        #expect(east.from == noon + 3600)
    }

    @Test func `times in UTC alone are exact`() throws {
        let message = try #require(try parse(info(times: "<onset>\(time(1))</onset><expires>\(time(4))</expires>")))
        #expect(message.hasNoOffset == nil && message.infos[0].from == noon + 3600 && message.infos[0].until == noon + 4 * 3600)
        #expect(try parse(info())?.hasNoOffset == nil, "no other time")
    }

    @Test(arguments: ["tomorrow", "20260703T120000Z", "2026-07-01T24:00:00Z"])
    func `an end that cannot be read is reported and counts as no end`(_ end: String) throws {
        for times in ["<expires>\(end)</expires>", ""] {
            let more = times.isEmpty ? parameter("eventEndingTime", end) : ""
            let message = try #require(try parse(info(times: times, more: more)))
            #expect(message.infos[0].hasOpenEnd == true && message.infos[0].doubts == [.time])
            #expect(
                reasons(message, noon + 3 * 86_400, noon + 3 * 86_400) == ["Tornado"],
                "the warning is valid while the service lists it")
            #expect(
                AlertMessage.doubts(in: [message]) == [
                    "1 of 1 warnings have times that Stormy cannot read, and may be valid for longer than Stormy shows"
                ])
        }
    }

    @Test func `a beginning that cannot be read is the time of sending`() throws {
        let read = try read(info(times: "<onset>soon</onset><expires>\(time(4))</expires>"))
        #expect(read.from == noon - 3600 && read.until == noon + 4 * 3600 && read.doubts == [.time])
    }

    // MARK: Feeds

    private func feed(_ items: String...) throws -> AlertFeed.Content {
        let text = "<rss><channel>\(items.map { "<item>\($0)</item>" }.joined())</channel></rss>"
        return try AlertFeed.parse(Data(text.utf8), base: "https://a.example/feed")
    }

    @Test(arguments: [
        "<title>Extreme tornado</title>", "<link>ftp://x/y</link>", "<link>tag:x</link>", "<link></link>",
        "<alert><identifier>a</identifier></alert>", "<content><alert><status>Actual</status></alert></content>",
    ]) func `an entry that leads to nothing is counted`(_ item: String) throws {
        let content = try feed(item, "<link>/a.xml</link>")
        #expect(content.unusable == 1 && content.entries == [.link("https://a.example/a.xml", updated: nil)])
    }

    @Test func `an entry with a warning that cannot be read leads to its document`() throws {
        let content = try feed("<alert><identifier>a</identifier></alert><link>/a.xml</link>")
        #expect(content.unusable == 0 && content.entries == [.link("https://a.example/a.xml", updated: nil)])
    }

    @Test func `a test in an entry is not counted`() throws {
        let test = """
            <alert><identifier>a</identifier><sent>\(time(0))</sent><status>Test</status><msgType>Alert</msgType></alert>
            """
        #expect(try feed(test) == AlertFeed.Content(entries: []))
        #expect(try feed() == AlertFeed.Content(entries: []))
    }

    // MARK: Areas

    private func ring(_ corners: [(Double, Double)]) throws -> [Coordinates] {
        try corners.map { try Coordinates(latitude: $0.0, longitude: $0.1) }
    }

    @Test(
        arguments: [
            [(60.0, -180.0), (60, 180), (30, 180), (30, -180)], [(60, -100), (60, 100), (30, 100), (30, -100)],
            [(60, -90), (60, 90), (30, 90), (30, -90)], [(60, -120), (60, 120), (30, 120), (30, -120), (60, -120)],
        ] as [[(Double, Double)]]) func `a polygon with edges over half of the Earth is not missed and is reported`(
            _ corners: [(Double, Double)]
        ) throws
    {
        for corners in [corners, corners.reversed()] {
            let area = AlertArea(name: "", polygons: [try ring(corners)])
            #expect(try area.contains(Coordinates(latitude: 47.4, longitude: 8.5)))
            #expect(try !area.contains(Coordinates(latitude: 20, longitude: 8.5)))
            #expect(try !area.contains(Coordinates(latitude: 70, longitude: 8.5)))
            #expect(try !area.contains(Coordinates(latitude: -47.4, longitude: 8.5)))
            var message = try #require(try parse(info()))
            #expect(!message.hasAmbiguousShapes)
            message.infos[0].areas = [area]
            #expect(message.hasAmbiguousShapes)
        }
    }

    @Test(
        arguments: [
            [(-20.0, 176.0), (-20, -178), (-15, -178), (-15, 176)],
            [(-20, 176), (-20, 180), (-20, -180), (-20, -178), (-15, -178), (-15, -180), (-15, 180), (-15, 176)],
            [(-20, 130), (-20, -130), (20, -130), (20, 130)],
        ] as [[(Double, Double)]]) func `a polygon over the date line has one side`(_ corners: [(Double, Double)]) throws
    {
        let area = AlertArea(name: "", polygons: [try ring(corners)])
        #expect(
            try area.contains(Coordinates(latitude: -17, longitude: 179))
                && !area.contains(Coordinates(latitude: -17, longitude: 8)))
        #expect(!AlertArea.isAmbiguous(area.polygons[0]))
    }

    @Test func `a polygon around a pole is not ambiguous`() throws {
        for pole in [90.0, -90] {
            let area = AlertArea(name: "", polygons: [try ring([(pole * 0.8, 0), (pole * 0.8, 120), (pole * 0.8, -120)])])
            #expect(!AlertArea.isAmbiguous(area.polygons[0]))
            #expect(try area.contains(Coordinates(latitude: pole * 0.95, longitude: 60)))
            #expect(try !area.contains(Coordinates(latitude: pole * 0.6, longitude: 60)))
        }
    }
}
