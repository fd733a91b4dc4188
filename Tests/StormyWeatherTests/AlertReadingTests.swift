import Foundation
import StormyWeather
import Testing

/// Tests documents in unusual forms.
@Suite struct AlertReadingTests {
    private let noon = Date(timeIntervalSince1970: 1_782_907_200)

    /// Reads a document that was sent at noon (2026-07-01T12:00:00Z).
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
        // The texts in other languages may show the kind of an unknown hazard. The kind remains unknown in two cases: the other
        // texts show two kinds, or the only known kind has a text in the same language.
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
            #expect(try read("", kind: "Cancel", references: text).references == ["met office,R1", "met office,R2"], "\(text)")
        }
        #expect(try read("", kind: "Cancel", references: "a@b,R1 c@d,R2").references == ["a@b,R1", "c@d,R2"])
        #expect(try read("", kind: "Cancel", references: "W@X,R1,\(time) v@x,,\(time)").references == ["w@x,R1"])
    }

    @Test(arguments: ["", "none", "N/A", "-", "0", "2026-07-01T12:00:00Z"])
    func `a placeholder is not a reference and the cancellation is reported`(_ text: String) throws {
        let cancellation = try read("", kind: "Cancel", references: text)
        #expect(cancellation.references.isEmpty)
        #expect(
            AlertBook([cancellation]).unusedReferences(of: [cancellation], now: noon) == [
                "1 of the cancellations do not name their warnings, and are not used"
            ])
    }

    // MARK: Areas

    private func area(_ shapes: String, code: String? = nil) throws -> AlertArea {
        let geocode = code.map { "<geocode><valueName>EMMA_ID</valueName><value>\($0)</value></geocode>" } ?? ""
        let text = "<area><areaDesc>x</areaDesc>\(shapes)\(geocode)</area>"
        return try #require(try read(info("Gale", area: text)).infos.first?.areas.first)
    }

    private func polygon(_ corners: String, code: String? = nil) throws -> AlertArea {
        try area("<polygon>\(corners)</polygon>", code: code)
    }

    private func at(_ latitude: Double, _ longitude: Double) throws -> Coordinates {
        try Coordinates(latitude: latitude, longitude: longitude)
    }

    @Test(arguments: [
        "-15,177 -15,185 -20,185 -20,177 -15,177", "-15,-183 -15,-175 -20,-175 -20,-183", "-15,177 -15,-175 -20,-175 -20,177",
    ]) func `an area over the date line is read with longitudes beyond 180 degrees`(_ corners: String) throws {
        let area = try polygon(corners)
        #expect(try area.contains(at(-16.8, 179.97)) && area.contains(at(-16.8, -176)) && !area.hasUnreadableShape)
        #expect(try !area.contains(at(-16.8, 175)) && !area.contains(at(-16.8, -174)))
        #expect(try self.area("<circle>-16.8,180.5 100</circle>").contains(at(-16.8, 179.97)))
    }

    @Test(arguments: [
        "47.0, 8.0 47.0, 9.0 48.0, 9.0 48.0, 8.0", "47 ,8 47 ,9 48 ,9 48 ,8", "47.0,8.0,0 47.0,9.0,0 48.0,9.0,5 48.0,8.0,0",
        "47.0,8.0\u{A0}47.0,9.0\u{A0}48.0,9.0\u{A0}48.0,8.0", "47.0,\u{202F}8.0\u{3000}47.0,9.0 48.0,9.0 48.0,8.0",
        "47 8 47 9 48 9 48 8", "47,8,47,9,48,9,48,8", "47,8, 47,9, 48,9, 48,8,", "47,8;47,9;48,9;48,8",
        "47, 8, 0, 47, 9, 0, 48, 9, 0, 48, 8, 0",
    ]) func `a polygon in another form is read`(_ corners: String) throws {
        let expected = try [(47.0, 8.0), (47, 9), (48, 9), (48, 8)].map { try at($0.0, $0.1) }
        #expect(try polygon(corners) == AlertArea(name: "x", polygons: [expected]))
    }

    @Test(arguments: ["47.3,8.5 10km", "47.3,8.5 10 KM", "47.3, 8.5 10", "47.3 8.5 10", "47.3,8.5,10", "47.3,8.5\u{A0}10"])
    func `a circle in another form is read`(_ text: String) throws {
        let circle = AlertArea.Circle(center: try at(47.3, 8.5), kilometres: 10)
        #expect(try area("<circle>\(text)</circle>") == AlertArea(name: "x", circles: [circle]))
    }

    @Test(arguments: [
        "99,500 47,8 47,9 48,9", "47,8 47,9 48", "47,8 47,9 x,9", "47,8 47,,9 48,9", ",47,8 47,9 48,9", "47,8 47,9 nan,9",
        "47,8 47,9 48,361", "47,8 47,9", "47 8 47 9 48", "47,8 47,9,0,1,2 48,9", "-",
    ]) func `a polygon is not used if one corner cannot be read`(_ corners: String) throws {
        let area = try polygon(corners)
        #expect(area.polygons.isEmpty && area.hasUnreadableShape)
        #expect(try JSONDecoder().decode(AlertArea.self, from: JSONEncoder().encode(area)) == area)
        #expect(try read(info("Gale", area: "<area><polygon>\(corners)</polygon></area>")).hasUnreadableShapes)
        #expect(try polygon(corners, code: "FR035").holds(at: at(45.9, 6.13)) == true, "by its code")
    }

    @Test func `an area without a shape is not unreadable`() throws {
        #expect(try !area("").hasUnreadableShape && !area("<polygon/><circle> </circle>").hasUnreadableShape)
        for circle in ["47.3,8.5", "47.3,8.5 -1", "95,8.5 10", "47.3,8.5 10 mi", "47.3,8.5 10,5"] {
            #expect(try area("<circle>\(circle)</circle>").hasUnreadableShape, "\(circle)")
        }
    }

    @Test func `a readable polygon counts beside one that cannot be read`() throws {
        let good = "<polygon>47,8 47,9 48,9 48,8</polygon>"
        let area = try area(good + "<polygon>99,500 1,1 2,2</polygon>")
        #expect(try area.holds(at: at(47.5, 8.5)) == true && area.holds(at: at(50, 8.5)) == false && area.hasUnreadableShape)
    }

    private static let withoutArea = [
        "<circle>40,-90 0</circle>", "<circle>0,0 0.0 km</circle>", "<polygon>0,0 0,0 0,0 0,0</polygon>",
        "<polygon>10,10 20,20 10,10</polygon>", "<polygon>0.1,0.1 0.2,0.2 0.3,0.3 0.7,0.7 0.1,0.1</polygon>",
        "<polygon>-15,179 -16,-179 -17,-177 -15,179</polygon>", "<polygon>5,180 5,-180 5,180 5,180</polygon>",
        "<circle>40,-90 0</circle><polygon>47,8 47,8 47,8</polygon>",
    ]

    @Test(arguments: withoutArea) func `a shape without an area hides no code`(_ shapes: String) throws {
        let annecy = try at(45.8992, 6.1294)
        let coded = try area(shapes, code: "FR035")
        #expect(coded.polygons.isEmpty && !coded.isDrawn && !coded.hasUnreadableShape)
        #expect(try coded.holds(at: annecy) == true && coded.holds(at: at(48.69, 6.18)) == false)
        // Without a known code, only the shape is used. The user is informed that the code of the area is unknown.
        for code in [nil, "XX001"] {
            let area = try area(shapes, code: code)
            #expect(area.holds(at: annecy) == nil && area.hasUnreadableShape)
        }
        let drawn = try area(shapes + "<circle>47,8 20</circle>", code: "FR035")
        #expect(drawn.isDrawn && !drawn.hasUnreadableShape && drawn.holds(at: annecy) == false)
    }

    @Test func `a circle without a radius holds at its point`() throws {
        let mark = "<circle>45.8992,6.1294 0</circle>"
        for code in [nil, "FR088"] {
            let area = try area(mark, code: code)
            #expect(try area.holds(at: at(45.8992, 6.1294)) == true && area.holds(at: at(45.9, 6.1294)) != true)
        }
    }

    @Test(
        arguments: [
            // The shapes are an area two metres wide, the digit 8, the Arctic within a circle of latitude, and a strip at the
            // date line.
            ("47,8 47.00002,8 47.00002,8.00002 47,8.00002", 47.00001, 8.00001),
            ("47,8 47.000002,8 47.000001,8.000002", 47.000001, 8.000001),
            ("0,0 2,2 2,0 0,2", 0.3, 1), ("60,-180 60,-90 60,0 60,90 60,180", 80, 10),
            ("-15,180 -15,-179.99999 -16,-179.99999 -16,180", -15.5, -179.999995),
            ("90,-180 90,180 -90,180 -90,-180", 10, 10),
        ]) func `a small or unusual polygon is a shape`(_ corners: String, _ latitude: Double, _ longitude: Double) throws
    {
        let area = try polygon(corners)
        #expect(try area.isDrawn && !area.hasUnreadableShape && area.contains(at(latitude, longitude)))
    }

    /// Stormy requested the warnings of this place, so a warning without an area is used.
    @Test func `a warning of the US service whose area cannot be read counts`() throws {
        func seen(_ corners: String, at place: Coordinates) throws -> Int {
            let json = """
                {"features":[{"geometry":{"type":"Polygon","coordinates":[[\(corners)]]},"properties":{"id":"a","event":"Gale",
                "sent":"2026-07-01T12:00:00Z","messageType":"Alert"}}]}
                """
            let messages = try AlertService.nws.read(Data(json.utf8), status: 200, now: noon).messages
            return AlertBook(messages).events(at: place, language: "en").flatMap(\.infos).count
        }
        let beyond = "[172,51],[185,51],[185,53],[172,53]"
        #expect(
            try seen(beyond, at: at(52, 179)) == 1 && seen(beyond, at: at(52, -176)) == 1 && seen(beyond, at: at(52, -170)) == 0)
        #expect(try seen("[172,51],[999,51],[185,53],[172,53]", at: at(52, -170)) == 1)
        #expect(try seen("[172,51],[172,51],[172,51],[172,51]", at: at(52, -170)) == 1)
    }

    // MARK: Times

    @Test(arguments: [-11.0, -10, 0, 5.5, 14]) func `a warning with times without an offset is not missed`(_ offset: Double)
        throws
    {
        func local(_ hours: Double) -> String {
            String((noon + (hours + offset) * 3600).formatted(.iso8601).dropLast())
        }
        let times = "<onset>\(local(2))</onset><expires>\(local(10))</expires>"
        for times in [times, "", "<onset>\(local(2))</onset>", "<expires>\(local(10))</expires>"] {
            let message = try read(info("Gale", times: times), sent: local(-2))
            #expect(message.hasNoOffset == true)
            let read = try #require(message.infos.first)
            #expect(read.from <= noon + 2 * 3600 && read.until >= noon + 10 * 3600, "\(times)")
            #expect(read.until <= noon + 41 * 3600, "\(times)")
        }
        // The warning had already ended when its message was sent.
        let over = try read(info("Gale", times: "<expires>\(local(-3))</expires>"), sent: local(-2))
        #expect(over.infos[0].hasOpenEnd == nil)
    }

    @Test(arguments: [-11.0, -10, 0, 5.5, 9, 14], ["Cancel", "Update"])
    func `a cancellation or an update whose time has no offset counts at once`(_ offset: Double, _ kind: String) throws {
        func local(_ hours: Double) -> String {
            String((noon + (hours + offset) * 3600).formatted(.iso8601).dropLast())
        }
        let warning = try read(info("Gale", times: "<expires>\(local(10))</expires>"), identifier: "R1", sent: local(-3))
        let update = info("Flood", times: "<expires>\(local(10))</expires>")
        let later = try read(
            kind == "Cancel" ? "" : update, identifier: "R2", sent: local(-0.5), kind: kind,
            references: "met@example,R1,\(local(-3))")
        #expect(later.references == [warning.identifier])
        let book = AlertBook([warning, later])
        let events = book.events(at: nil, language: nil, now: noon)
        #expect(events.flatMap(\.infos).map(\.event) == (kind == "Cancel" ? [] : ["Flood"]))
        #expect(book.unusedReferences(of: [later], now: noon).isEmpty)
    }

    @Test func `a time without an offset has the offset of the other times`() throws {
        let times = "<onset>2026-07-01T02:00:00</onset><expires>2026-07-01T08:00:00</expires>"
        let message = try read(info("Gale", times: times), sent: "2026-07-01T01:00:00-11:00")
        #expect(message.sent == noon && message.hasNoOffset == nil)
        #expect(message.infos.map(\.from) == [noon + 3600] && message.infos.map(\.until) == [noon + 7 * 3600])
        let mixed = "<onset>2026-07-01T02:00:00</onset><expires>2026-07-01T08:00:00-11:00</expires>"
        #expect(try read(info("Gale", times: mixed), sent: "2026-07-01T01:00:00").infos == message.infos)
    }

    @Test(arguments: [
        "2026-07-01T12:00:00+00", "2026-07-01t12:00:00z", "2026-07-01 12:00:00Z", "2026-07-01 14:00:00+02", "2026-07-01t07:00-05",
    ]) func `a time of sending in another form is read`(_ sent: String) throws {
        #expect(try read(info("Gale"), sent: sent).sent == noon)
    }

    // MARK: Limits

    @Test func `the most severe infos of a document with thousands of infos are read`() throws {
        let minor = (0..<2000).map { info("Gale \($0)", "Minor") }.joined()
        let message = try read(minor + info("Flood", "Extreme") + info("Fog", "Severe"))
        #expect(message.infos.count == CAPDocument.mostInfos && message.hasTooManyInfos == true)
        #expect(message.infos.prefix(3).map(\.event) == ["Flood", "Fog", "Gale 0"])
        let most = try read(String(repeating: info("Gale", "Minor"), count: CAPDocument.mostInfos))
        #expect(most.infos.count == CAPDocument.mostInfos && most.hasTooManyInfos == nil)
    }

    @Test func `many warnings are thirty reasons that contain every message`() throws {
        let messages = try (0..<200).map { number in
            try read(info("Gale \(number)", number == 150 ? "Extreme" : "Severe"), identifier: "\(number)")
        }
        let events = AlertBook(messages).events(at: nil, language: nil)
        let reasons = StormRule().assess(Forecast(hours: []), alerts: events, now: noon + 60).reasons
        #expect(reasons.count == 30 && reasons.contains { $0.event == "Gale 150" && $0.peak == 4 })
        #expect(reasons.map(\.event).contains("171 other warnings"))
        #expect(Set(reasons.flatMap { $0.messages ?? [] }).count == 200)
    }
}
