import Foundation
import StormyWeather
import TestSamples
import Testing
import TransferMachines

private func instant(_ text: String) -> Date { (try? Date(text, strategy: .iso8601)) ?? .distantPast }

private func at(_ latitude: Double, _ longitude: Double) -> Coordinates {
    guard let place = try? Coordinates(latitude: latitude, longitude: longitude) else { preconditionFailure("no place") }
    return place
}

/// Returns a complete document. A test can change some parts of the document.
private func document(
    _ identifier: String = "one", status: String = "Actual", kind: String = "Alert", references: String = "", info: String? = nil
) -> String {
    let info =
        info
            ?? """
            <info><event>Storm</event><severity>Severe</severity><expires>2026-07-01T20:00:00+02:00</expires>
            <area><areaDesc>Here</areaDesc><circle>50,10 20</circle></area></info>
            """
    return """
        <?xml version="1.0" encoding="UTF-8"?>
        <alert xmlns="urn:oasis:names:tc:emergency:cap:1.2"><identifier>\(identifier)</identifier><sender>a@b</sender>
        <sent>2026-07-01T12:00:00+02:00</sent><status>\(status)</status><msgType>\(kind)</msgType>
        <references>\(references)</references>\(info)</alert>
        """
}

@Suite struct AlertTests {
    // MARK: Documents

    @Test func `a recorded document is read, and a truncated one is not`() throws {
        let folder = URL(filePath: #filePath).deletingLastPathComponent()
        let data = try Data(contentsOf: folder.appending(path: "Fixtures/dwd_gewitter.xml"))
        let message = try #require(try CAPDocument.parse(data))
        #expect(message.kind == .update && message.sent == instant("2022-08-26T20:03:00Z"))
        #expect(
            message.references == [
                "opendata@dwd.de,2.49.0.0.276.0.DWD.PVW.1661542140000.7462e657-ce54-473f-91c8-abe408afe703.MUL"
            ])
        let info = try #require(message.infos.first)
        #expect(info.event == "STARKES GEWITTER" && info.hazard == .thunderstorm && info.severity == .moderate)
        #expect(info.issuer == "Deutscher Wetterdienst" && info.language == "de-DE")
        #expect(info.from == message.sent && info.until == instant("2022-08-26T21:00:00Z"))
        // The other areas in the document are municipalities. The municipalities have only codes and no polygons.
        #expect(info.areas[0].polygons[0].count == 4 && info.areas.dropFirst().allSatisfy { !$0.isDrawn })
        #expect(AlertBook([message]).events(at: at(48, 11), language: nil).first?.infos.isEmpty == true)
        let cuts = stride(from: 0, to: data.count - 20, by: 7).filter { length in
            (try? CAPDocument.parse(data.prefix(length))) != nil
        }
        #expect(cuts.isEmpty, "whole at \(cuts.prefix(3))")
    }

    @Test(arguments: ["Test", "Exercise", "Draft", "System"])
    func `a message with another status than Actual is not a warning`(_ status: String) throws {
        #expect(try CAPDocument.parse(Data(document(status: status).utf8)) == nil)
    }

    @Test(arguments: ["Ack", "Error"]) func `an acknowledgement or an error message is not a warning`(_ kind: String) throws {
        #expect(try CAPDocument.parse(Data(document(kind: kind).utf8)) == nil)
    }

    @Test(arguments: [
        "", "{}", "<alert/>", "<html/>", "<alert><identifier>x</identifier></alert>",
        "<!DOCTYPE a [<!ENTITY e \"x\">]><alert><identifier>&e;</identifier></alert>",
        String(repeating: "<alert>", count: 40) + String(repeating: "</alert>", count: 40),
    ]) func `a text that is not a CAP document is an error`(_ text: String) {
        #expect(throws: WeatherError.notCAP) { try CAPDocument.parse(Data(text.utf8)) }
    }

    /// A document contains the times `effective`, `onset` and `expires`, and the parameter `eventEndingTime`.
    @Test func `the times of effect, onset, expiry and event end are distinguished`() throws {
        func times(_ more: String) throws -> (Date, Date) {
            let text = document(
                info: "<info><event>Storm</event><effective>2026-07-01T13:00:00Z</effective>\(more)</info>")
            let info = try #require(try CAPDocument.parse(Data(text.utf8))?.infos.first)
            return (info.from, info.until)
        }
        let (onset, expires) = ("<onset>2026-07-01T15:00:00Z</onset>", "<expires>2026-07-01T16:00:00Z</expires>")
        let end = "<parameter><valueName>eventEndingTime</valueName><value>2026-07-01T18:00:00Z</value></parameter>"
        #expect(try times("") == (instant("2026-07-01T13:00:00Z"), instant("2026-07-02T01:00:00Z")))
        #expect(try times(onset + expires) == (instant("2026-07-01T15:00:00Z"), instant("2026-07-01T16:00:00Z")))
        #expect(try times(onset + expires + end).1 == instant("2026-07-01T18:00:00Z"))
        // The document was sent with the time offset +02:00.
        #expect(try times("<onset>2026-07-01T16:00:00</onset>").0 == instant("2026-07-01T14:00:00Z"))
    }

    private func entries(_ feed: String) throws -> [String] {
        try AlertFeed.parse(Data(feed.utf8), base: "https://a.example/feeds/all.xml").entries.map { entry in
            switch entry {
            case .link(let address, _): address
            case .message(let message): message.identifier
            }
        }
    }

    @Test func `an enclosure that is a document comes before the page for readers`() throws {
        func item(_ more: String) throws -> [String] {
            try entries("<rss><channel><item><link>https://a.example/page.html</link>\(more)</item></channel></rss>")
        }
        for type in ["application/cap+xml", "Application/CAP+xml; charset=utf-8", "application/xml", "text/xml"] {
            let document = "<enclosure url=\"../cap/1.xml\" type=\"\(type)\" length=\"1\"/>"
            #expect(try item("<enclosure url=\"/map.png\" type=\"image/png\"/>" + document) == ["https://a.example/cap/1.xml"])
        }
        #expect(try item("<enclosure url=\"/map.png\" type=\"image/png\"/>") == ["https://a.example/page.html"])
        #expect(try item("<enclosure url=\"\" type=\"text/xml\"/>") == ["https://a.example/page.html"])
        let both = "<enclosure url=\"/a.xml\" type=\"text/xml\"/><enclosure url=\"/b\" type=\"application/cap+xml\"/>"
        #expect(try item(both) == ["https://a.example/b"])
    }

    @Test(arguments: ["content", "content:encoded", "description", "summary"])
    func `a warning in the text of an entry is read`(_ name: String) throws {
        func feed(_ text: String) -> String {
            let entry = "<entry><\(name)>\(text)</\(name)><id>urn:x</id><link href=\"/1\"/></entry>"
            return "<feed xmlns:content=\"http://purl.org/rss/1.0/modules/content/\">\(entry)</feed>"
        }
        let latin = document().replacing("UTF-8", with: "ISO-8859-1").replacing("Storm", with: "Sturm – Böen")
        for text in [document(), latin] {
            #expect(try entries(feed("<![CDATA[\n\(text)]]>")) == ["a@b,one"])
            let escaped = text.replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing(">", with: "&gt;")
            #expect(try entries(feed(escaped)) == ["a@b,one"])
        }
        let content = try AlertFeed.parse(Data(feed("<![CDATA[\(latin)]]>").utf8), base: "https://a.example/")
        guard case .message(let message)? = content.entries.first else { throw WeatherError.noData }
        #expect(message.infos.map(\.event) == ["Sturm – Böen"])
        // If an entry of a feed contains only text, or a warning that cannot be read, Stormy follows the link of the entry.
        for text in ["<![CDATA[<p>An alert</p>]]>", "An alert", "<![CDATA[<alert/>]]>", "<![CDATA[<alert>]]>"] {
            #expect(try entries(feed(text)) == ["https://a.example/1"], "\(text)")
        }
    }

    @Test func `lists of documents are read`() throws {
        let documents = ["a", "b"].map { document($0).replacing("<?xml version=\"1.0\" encoding=\"UTF-8\"?>", with: "") }
        #expect(try entries("<alerts>\(documents.joined())</alerts>") == ["a@b,a", "a@b,b"])
        let wrapped = documents.map {
            "<contentObject><xmlContent><embeddedXMLContent>\($0)</embeddedXMLContent></xmlContent></contentObject>"
        }
        #expect(try entries("<EDXLDistribution>\(wrapped.joined())</EDXLDistribution>") == ["a@b,a", "a@b,b"])
        #expect(try entries("<alerts/>").isEmpty)
        let cut = try AlertFeed.parse(Data("<alerts>\(documents[0])<alert/></alerts>".utf8), base: "https://a.example/")
        #expect(cut.entries.count == 1 && cut.unusable == 1)
    }

    @Test func `entries of Atom and RSS feeds become links and messages`() throws {
        let base = "https://alerts.example/feeds/all.xml"
        let atom = """
            <feed xmlns="http://www.w3.org/2005/Atom">
            <entry><updated>2026-07-01T12:00:00Z</updated><link rel="alternate" href="one.html"/><link type="application/cap+xml" href="cap/one.xml"/></entry>
            <entry><link href="https://other.example/two.xml"/></entry><entry><id>javascript:alert(1)</id></entry>
            <entry><content type="text/xml">\(document("three").replacing("<?xml version=\"1.0\" encoding=\"UTF-8\"?>", with: ""))</content></entry>
            </feed>
            """
        let entries = try AlertFeed.parse(Data(atom.utf8), base: base).entries
        #expect(
            entries.suffix(2) == [
                .link("https://other.example/two.xml", updated: nil),
                .link("https://alerts.example/feeds/cap/one.xml", updated: "2026-07-01T12:00:00Z"),
            ])
        guard case .message(let message) = try #require(entries.first) else { throw WeatherError.noData }
        #expect(entries.count == 3 && message.identifier == "a@b,three")
        let rss =
            "<rss><channel><item><title>x</title><link>https://a.example/1</link></item><item><guid>2</guid></item></channel></rss>"
        #expect(
            try AlertFeed.parse(Data(rss.utf8), base: base).entries == [
                .link("https://a.example/1", updated: nil), .link("https://alerts.example/feeds/2", updated: nil),
            ])
        #expect(try AlertFeed.parse(Data(document().utf8), base: base).entries.count == 1)
        #expect(throws: WeatherError.notCAP) { try AlertFeed.parse(Data("<html/>".utf8), base: base) }
    }

    // MARK: Services

    @Test func `responses of warning services are read`() throws {
        let us = try #require(AlertService.nws.read(fixture("nws_alerts"), status: 200, now: .now).messages.first)
        #expect(us.kind == .update && us.references.count == 4 && us.references.contains("NWS-IDP-PROD-3963421-3367361"))
        let flood = try #require(us.infos.first)
        #expect(flood.event == "Flood Watch" && flood.hazard == .flood && flood.severity == .severe)
        // The warning is valid until the event ends, and not only until its message expires.
        #expect(flood.until == instant("2019-12-22T18:00:00Z") && flood.issuer == "NWS Portland OR")
        let german = try #require(AlertService.brightSky.read(fixture("brightsky_alerts"), status: 200, now: .now).messages.first)
        #expect(
            german.infos.map(\.event) == ["frost", "FROST"]
                && german.infos.allSatisfy { $0.severity == .minor && $0.hazard == .cold })
        let met = """
            {"features":[{"geometry":{"type":"Polygon","coordinates":[[[5,58],[11,58],[11,62],[5,62],[5,58]]]},"properties":
            {"id":"2.49.0.1.578.0.1","event":"lightning","eventAwarenessName":"Lightning","severity":"Severe","status":"Actual",
            "type":"Alert","area":"Viken","eventEndingTime":"2026-07-01T18:00:00+00:00"},
            "when":{"interval":["2026-07-01T12:00:00+00:00","2026-07-01T16:00:00+00:00"]}},
            {"properties":{"id":"2","event":"wind","status":"Test"},"when":{"interval":["2026-07-01T12:00:00Z","2026-07-01T16:00:00Z"]}},
            {"properties":{}}]}
            """
        let messages = try AlertService.metNorway.read(Data(met.utf8), status: 200, now: .now).messages
        #expect(messages.map(\.identifier) == ["2.49.0.1.578.0.1"])
        let oslo = AlertBook(messages).events(at: at(59.9, 10.75), language: "en").first?.infos.first
        #expect(oslo?.hazard == .thunderstorm && oslo?.until == instant("2026-07-01T18:00:00Z"))
        #expect(AlertBook(messages).events(at: at(63, 10.75), language: "en").first?.infos.isEmpty == true, "outside its area")
        for service in AlertService.allCases {
            #expect(throws: WeatherError.self) { try service.read(Data("<html>".utf8), status: 200, now: .now) }
            #expect(throws: WeatherError.rateLimited(reason: "")) { try service.read(Data(), status: 429, now: .now) }
            if service == .meteoAlarm { continue }
            let none = service == .brightSky ? "{\"alerts\":[]}" : "{\"features\":[]}"
            #expect(try service.read(Data(none.utf8), status: 200, now: .now).messages.isEmpty)
        }
    }

    // MARK: Geometry

    private func ring(_ corners: [(Double, Double)]) -> [Coordinates] { corners.map { at($0.0, $0.1) } }

    @Test func `areas across the date line and around a pole contain the right places`() throws {
        let fiji = AlertArea(name: "", polygons: [ring([(-20, 176), (-20, -178), (-15, -178), (-15, 176)])])
        #expect(fiji.contains(at(-17, 179)) && fiji.contains(at(-17, -179)) && !fiji.contains(at(-17, 170)))
        #expect(!fiji.contains(at(-17, 0)) && !fiji.contains(at(-25, 179)))
        let arctic = AlertArea(name: "", polygons: [ring([(70, 0), (70, 120), (70, -120)])])
        #expect(arctic.contains(at(89, 45)) && arctic.contains(at(90, 0)) && !arctic.contains(at(60, 45)))
        let antarctic = AlertArea(name: "", polygons: [ring([(-70, -120), (-70, 120), (-70, 0)])])
        #expect(
            antarctic.contains(at(-89, 45)) && !antarctic.contains(at(-60, 45)) && !antarctic.contains(at(80, 45)))
        let circle = AlertArea(name: "", circles: [.init(center: at(0, 179.9), kilometres: 50)])
        #expect(circle.contains(at(0.2, -179.9)) && !circle.contains(at(1, 179.9)))
        #expect(!AlertArea(name: "", polygons: [ring([(0, 0), (1, 1)])]).contains(at(0.5, 0.5)), "a line holds nothing")
    }

    /// Compares random areas with a simple rule for rectangles.
    @Test func `a rectangle contains exactly the places inside it`() throws {
        var random = SystemRandomNumberGenerator()
        for _ in 0..<3000 {
            let (south, west) = (Double.random(in: -80...60, using: &random), Double.random(in: -180...180, using: &random))
            let (high, wide) = (Double.random(in: 1...15, using: &random), Double.random(in: 1...100, using: &random))
            func wrap(_ east: Double) -> Double { east > 180 ? east - 360 : east }
            let corners = [(south, west), (south, wrap(west + wide)), (south + high, wrap(west + wide)), (south + high, west)]
            let area = AlertArea(name: "", polygons: [ring(Bool.random(using: &random) ? corners : corners.reversed())])
            let (north, east) = (Double.random(in: -89...89, using: &random), Double.random(in: -180...180, using: &random))
            let offset = (east - west).truncatingRemainder(dividingBy: 360)
            let isInside = (south...south + high).contains(north) && (0...wide).contains(offset < 0 ? offset + 360 : offset)
            #expect(area.contains(at(north, east)) == isInside, "\(corners) \(north) \(east)")
        }
    }

    @Test func `a polygon of 50,000 corners is read, stored and searched`() throws {
        let corners = (0..<50_000).map { "\(50 + cos(Double($0) / 50_000 * 2 * .pi)),\(10 + sin(Double($0) / 50_000 * 2 * .pi))" }
        let text = document(
            info:
                "<info><event>Storm</event><area><areaDesc>x</areaDesc><polygon>\(corners.joined(separator: " "))</polygon></area></info>"
        )
        let area = try #require(try CAPDocument.parse(Data(text.utf8))?.infos.first?.areas.first)
        #expect(area.polygons.first?.count == 50_000 && area.contains(at(50.9, 10)) && !area.contains(at(51.1, 10)))
        // A check stores and reads this area for each place.
        let stored = try JSONEncoder().encode(area)
        #expect(stored.count < 12 * 50_000)
        let read = try JSONDecoder().decode(AlertArea.self, from: stored)
        #expect(read.polygons.first?.count == 50_000 && read.contains(at(50.9, 10)) && !read.contains(at(51.1, 10)))
    }

    @Test func `a polygon is stored exactly up to six decimals`() throws {
        let corners = ring([(-90, -180), (90, 180), (0, 0), (51.437712, -13.322201), (-0.000001, 0.1)])
        let area = AlertArea(name: "A", polygons: [corners, []], circles: [.init(center: at(1, 2), kilometres: 3)])
        #expect(try JSONDecoder().decode(AlertArea.self, from: JSONEncoder().encode(area)) == area)
    }

    @Test func `a polygon that an earlier version stored is read`() throws {
        let stored = #"{"name":"A","polygons":[[{"latitude":1.5,"longitude":-2}]],"circles":[]}"#
        #expect(try JSONDecoder().decode(AlertArea.self, from: Data(stored.utf8)).polygons == [ring([(1.5, -2)])])
    }

    @Test func `a stored polygon beyond the Earth is refused`() {
        // The corner has a latitude of 2000 degrees.
        let far = withUnsafeBytes(of: (Int32(2_000_000_000), Int32(0))) { Data($0) }.base64EncodedString()
        let stored = "{\"name\":\"A\",\"polygons\":[\"\(far)\"],\"circles\":[]}"
        #expect(throws: CoordinateError.self) { try JSONDecoder().decode(AlertArea.self, from: Data(stored.utf8)) }
    }

    private func polygon(_ corners: String) throws -> AlertMessage {
        let area = "<area><areaDesc>x</areaDesc><polygon>\(corners)</polygon></area>"
        let text = document(info: "<info><event>Storm</event>\(area)</info>")
        return try #require(try CAPDocument.parse(Data(text.utf8)))
    }

    @Test func `corners are read as the standard library reads numbers`() throws {
        let numbers = [
            "0", "-0", "-0.25", "+7.125", "51.4377", "-13.3222", "1e1", "0.1234567890123456789", "000000000000000000012",
            "0.30000000000000004", "89.999999999999", "1.1",
        ]
        let read = try polygon(numbers.map { "\($0),1" }.joined(separator: "\n\t ") + " 0,2").infos[0].areas[0].polygons[0]
        #expect(read.dropLast().map(\.latitude) == numbers.map { (Double($0) ?? .nan) + 0 })
    }

    /// If only some areas of the warning were read, the places in its other areas would get no warning.
    @Test func `a warning with too many corners has no drawn area and is marked`() throws {
        func corners(_ count: Int) -> String { "2,1 1,2 " + String(repeating: "1,1 ", count: count - 2) }
        let most = try polygon(corners(CAPDocument.mostCorners))
        #expect(most.cornerCount == CAPDocument.mostCorners && most.hasTooManyCorners == nil && !most.isCodedOnly)
        let more = try polygon(corners(CAPDocument.mostCorners + 1))
        #expect(more.cornerCount == 0 && more.hasTooManyCorners == true && more.isCodedOnly)
        // The limit applies to the sum of all polygons of a document.
        let area = "<area><polygon>\(corners(CAPDocument.mostCorners / 2 + 1))</polygon></area>"
        let text = document(info: String(repeating: "<info><event>Storm</event>\(area)</info>", count: 2))
        #expect(try CAPDocument.parse(Data(text.utf8))?.hasTooManyCorners == true)
    }

    @Test func `a response with too many elements is not read`() {
        let answer = Data("<feed>\(String(repeating: "<a/>", count: ResponseXML.maximumNodes))</feed>".utf8)
        #expect(throws: WeatherError.tooManyElements) { try MeteoAlarmFeed(reading: answer, status: 200) }
        #expect(WeatherError.tooManyElements.message == "the response of the weather service has more than 1048576 XML elements")
    }

    // MARK: Lineages

    private let noon = instant("2026-07-01T12:00:00Z")

    private func message(
        _ identifier: String, _ minute: Double, _ kind: AlertMessage.Kind = .alert, of references: [String] = [],
        from: Double = 2,
        until: Double = 5, event: String = "Storm", severity: CAPSeverity? = .severe
    ) -> AlertMessage {
        let info = AlertInfo(
            event: event, hazard: .wind, severity: severity, from: noon + from * 3600, until: noon + until * 3600, issuer: "DWD",
            areas: [])
        return AlertMessage(
            identifier: identifier, sent: noon + minute * 60, kind: kind, references: references,
            infos: kind == .cancel ? [] : [info])
    }

    private func state(_ messages: [AlertMessage]) -> [AlertEvent.State] {
        AlertBook(messages).events(at: nil, language: nil).map(\.state)
    }

    @Test func `messages that refer to each other are one event in any order`() {
        let (first, second) = (message("a", 0), message("b", 10, .update, of: ["a"], from: 3, until: 6))
        let third = message("c", 20, .update, of: ["b"], from: 4, until: 7)
        let cancel = message("d", 30, .cancel, of: ["c"])
        for order in [[first, second, third], [third, second, first], [second, third, first, second]] {
            let events = AlertBook(order).events(at: nil, language: nil)
            #expect(events.count == 1 && events[0].messages == ["a", "b", "c"])
            #expect(events[0].infos.first?.from == noon + 4 * 3600, "the newest counts")
            #expect(state(order + [cancel]) == [.cancelled] && state([cancel] + order) == [.cancelled])
        }
        // The first cancellation refers to the first message of the chain, and arrives last. The second cancellation refers to
        // several events.
        #expect(state([first, second, third, message("d", 30, .cancel, of: ["a"])]) == [.cancelled])
        #expect(state([first, message("x", 5), message("d", 30, .cancel, of: ["a", "x"])]) == [.cancelled])
        // An update that was issued after a cancellation is valid.
        #expect(state([first, message("d", 30, .cancel, of: ["a"]), message("e", 40, .update, of: ["d"])]) == [.standing])
        // If a message is sent again with its identifier, it belongs to the same event.
        let again = AlertBook([first, message("a", 15, from: 9, until: 10)]).events(at: nil, language: nil)
        #expect(again.count == 1 && again[0].infos.first?.from == noon + 9 * 3600)
        // If no known warning belongs to a cancellation, the cancellation contains no hazard.
        #expect(AlertBook([cancel]).events(at: nil, language: nil).map(\.infos) == [[]])
    }

    @Test func `each part of a split warning is valid until it is replaced or ended`() {
        func moved(_ message: AlertMessage, _ latitude: Double) -> AlertMessage {
            var message = message
            for index in message.infos.indices {
                message.infos[index].areas = [
                    AlertArea(name: "There", circles: [.init(center: at(latitude, 10), kilometres: 50)])
                ]
            }
            return message
        }
        let (first, here) = (moved(message("a", 0), 50), moved(message("b1", 10, .update, of: ["a"]), 50))
        let elsewhere = moved(message("b2", 10.2, .update, of: ["a"]), 20)
        func infos(_ messages: [AlertMessage]) -> [AlertInfo] {
            AlertBook(messages).events(at: at(50, 10), language: nil).flatMap(\.infos)
        }
        #expect(infos([first, here, elsewhere]).count == 1)
        #expect(infos([first, elsewhere]).isEmpty, "it moved away")
        // Both parts are for the place, but for different times.
        let later = moved(message("b2", 10.2, .update, of: ["a"], from: 8, until: 9), 50)
        #expect(infos([first, here, later]).map(\.from) == [noon + 2 * 3600, noon + 8 * 3600])
        // One part of the warning is updated or ended, and the other part stays valid. The new message refers to the last message
        // or to the complete chain.
        for references in [["b2"], ["a", "b2"]] {
            #expect(infos([first, here, elsewhere, moved(message("c", 60, .update, of: references), 20)]).count == 1)
            #expect(infos([first, here, later, message("c", 60, .cancel, of: references)]).map(\.from) == [noon + 2 * 3600])
        }
        // The first message is cancelled for one part. At the same time, an update continues the other part.
        #expect(infos([first, here, message("c", 10, .cancel, of: ["a"])]).count == 1)
        // A message that refers only to the first message ends or replaces all parts. Some services send messages that refer only
        // to the first message.
        #expect(infos([first, here, later, message("c", 60, .cancel, of: ["a"])]).isEmpty)
        #expect(infos([first, here, message("c", 60, .update, of: ["a"], from: 6, until: 7)]).map(\.from) == [noon + 6 * 3600])
    }

    /// An entry that cannot be read may be a warning that the user needs. Entries that cannot be read are therefore counted.
    @Test func `entries that cannot be read are counted`() throws {
        let list = "{\"features\":[null,1,{\"properties\":null},{},{\"properties\":{\"status\":\"Test\"}}]}"
        for service in [AlertService.nws, .metNorway] {
            let answer = try service.read(Data(list.utf8), status: 200, now: noon)
            #expect(answer.messages.isEmpty && answer.unreadable == 4, "\(service)")
        }
    }

    @Test func `one identifier from two senders is two messages`() throws {
        func sent(by sender: String) throws -> AlertMessage {
            let text = document(info: "<info><event>Storm</event></info>").replacingOccurrences(
                of: "<sender>[^<]*</sender>", with: "<sender>\(sender)</sender>", options: .regularExpression)
            return try #require(try CAPDocument.parse(Data(text.utf8)))
        }
        #expect(AlertBook([try sent(by: "a@a"), try sent(by: "b@b")]).messages.count == 2)
    }

    /// The entries of a feed can have any order.
    @Test func `the newest documents of a large feed are used, and the others are counted`() throws {
        let entries = (0..<1200).map { number in
            "<entry><link href=\"/\(number)\"/><updated>2026-07-\(10 + number / 100)T\(10 + number % 10):00:00Z</updated></entry>"
        }
        let content = try AlertFeed.parse(Data("<feed>\(entries.joined())</feed>".utf8), base: "https://feed.example/")
        #expect(content.entries.count == AlertFeed.mostLinks && content.leftOut == 200)
        guard case .link(let link, _)? = content.entries.first else { throw WeatherError.notCAP }
        #expect(link == "https://feed.example/1109")
    }

    @Test func `the most severe documents of a feed come first`() throws {
        func entry(_ link: String, _ severity: String, _ day: Int) -> String {
            "<entry><link href=\"/\(link)\"/><cap:severity>\(severity)</cap:severity><updated>2026-07-\(day)T12:00:00Z</updated></entry>"
        }
        let entries = [
            entry("minor", "Minor", 20), entry("old", "Extreme", 10), entry("unknown", "?", 12),
            entry("moderate", "Moderate", 20),
            entry("severe", "Severe", 11), entry("new", "extreme", 11),
        ]
        let feed = "<feed xmlns:cap=\"urn:oasis:names:tc:emergency:cap:1.2\">\(entries.joined())</feed>"
        let links = try AlertFeed.parse(Data(feed.utf8), base: "https://feed.example/").entries.compactMap { entry -> String? in
            if case .link(let link, _) = entry { link.split(separator: "/").last.map(String.init) } else { nil }
        }
        #expect(links == ["new", "old", "unknown", "severe", "moderate", "minor"])
    }

    /// If a warning lasts ten years, this is a mistake of the service.
    @Test func `a warning lasts at most ten days`() {
        let info = message("a", 0, from: 0, until: 24 * 3_650).infos[0]
        #expect(info.until == noon + 10 * 86_400)
    }

    @Test func `severity, hazard and time decide whether a warning counts`() throws {
        let calm = Forecast(
            hours: (0..<30).map {
                ForecastHour(start: noon + Double($0) * 3600, weatherCode: 3, precipitationMM: 0, gustsKMH: 10)
            })
        func judged(_ message: AlertMessage, _ least: CAPSeverity = .severe) -> Assessment {
            StormRule(alertSeverity: least).assess(
                calm, alerts: AlertBook([message]).events(at: nil, language: nil), now: noon)
        }
        let severe = judged(message("a", 0))
        #expect(
            severe.verdict == .stormy && severe.reasons.map { $0.explanation(in: .metric) } == ["warning: Storm, severe: DWD"])
        #expect(severe.reasons[0].messages == ["a"])
        for weak in [CAPSeverity.moderate, .minor, nil] {
            let assessment = judged(message("a", 0, severity: weak))
            #expect(assessment.verdict == .calm && assessment.unconfirmed?.map(\.kind) == [.alert])
        }
        for mood in ["<urgency>Past</urgency>", "<certainty>Unlikely</certainty>", "<responseType>AllClear</responseType>"] {
            let text = document(info: "<info><event>Storm</event><severity>Severe</severity>\(mood)</info>")
            #expect(try CAPDocument.parse(Data(text.utf8))?.infos.first?.severity == nil, "\(mood)")
        }
        #expect(judged(message("a", 0, severity: .moderate), .moderate).isStormy == true)
        #expect(judged(message("a", 0), .off).isStormy == false)
        #expect(judged(message("a", 0, from: -5, until: -1)).unconfirmed == [], "over")
        #expect(judged(message("a", 0, from: 30, until: 31)).isStormy == false, "beyond the horizon")
        // If a warning confirms the thunder, the thunder is part of the storm, even if the warning is mild.
        var thunder = calm
        thunder.hours[3].weatherCode = 95
        var mild = message("a", 0, severity: .minor)
        mild.infos[0].hazard = .thunderstorm
        let alerts = AlertBook([mild]).events(at: nil, language: nil)
        #expect(
            StormRule().assess(thunder, alerts: alerts, now: noon).reasons.map { $0.explanation(in: .metric) } == [
                "thunderstorm (WMO 95) of which DWD warns: Open-Meteo"
            ])
    }

    private let calm: Forecast = Forecast(
        hours: (0..<30).map {
            ForecastHour(
                start: instant("2026-07-01T12:00:00Z") + Double($0) * 3600, weatherCode: $0 == 3 ? 95 : 3, precipitationMM: 0.1,
                gustsKMH: 10)
        })

    private func looks(_ looks: [[AlertMessage]], place: Coordinates? = nil) -> [Desk] {
        looks.reduce(into: [Desk(StormRule(), place ?? at(50, 10))]) { desks, messages in
            desks[0].look(messages, at: noon, forecast: calm)
        }
    }

    /// The update makes the warning weaker, moves it to another area, ends it early, or delays it for days.
    @Test func `the notification is withdrawn when its warning does not apply any more`() {
        var weaker = message("b", 10, .update, of: ["a"], severity: .moderate)
        let over = message("b", 10, .update, of: ["a"], from: -3, until: -1)
        let later = message("b", 10, .update, of: ["a"], from: 40, until: 42)
        var elsewhere = message("b", 10, .update, of: ["a"])
        elsewhere.infos[0].areas = [AlertArea(name: "There", circles: [.init(center: at(20, 10), kilometres: 50)])]
        for update in [weaker, over, later, elsewhere] {
            let desk = looks([[message("a", 0)], [update]])[0]
            #expect(desk.notices == 1 && !desk.isShown, "\(update)")
        }
        // If only a warning confirmed the thunder, the thunder no longer counts after the warning is cancelled. The rule also
        // applies to a warning that is too mild to count alone.
        for severity in [CAPSeverity.severe, .minor] {
            weaker = message("a", 0, event: "Gewitter", severity: severity)
            weaker.infos[0].hazard = .thunderstorm
            let desk = looks([[weaker], [message("c", 5, .cancel, of: ["a"])]])[0]
            #expect(desk.notices == 1 && !desk.isShown)
        }
    }

    /// One response of a service may not list the warning, and the next response may list it again.
    @Test func `a warning that is listed again after a gap is valid again`() {
        var book = AlertBook([message("a", 0)])
        func list(_ messages: [AlertMessage]) {
            let before = book.messages
            for message in messages { book.add(message) }
            book.endMissingWarnings(from: messages, before, now: noon)
        }
        list([])
        #expect(book.events(at: nil, language: nil).map(\.state) == [.cancelled])
        list([message("a", 0)])
        #expect(book.events(at: nil, language: nil).map(\.state) == [.standing])
        list([message("b", 5, .update, of: ["a"])])
        #expect(book.events(at: nil, language: nil).map(\.state) == [.standing])
    }

    /// If one message contains two hazards or two times, the list contains two reasons. If thirteen messages have equal texts,
    /// the list contains one reason.
    @Test func `each hazard is listed once as a reason`() {
        var twofold = message("a", 0)
        twofold.infos.append(message("x", 0, from: 8, until: 9, event: "Rain").infos[0])
        twofold.infos.append(message("x", 0, from: -3, until: -1, event: "Past", severity: .extreme).infos[0])
        func reasons(_ messages: [AlertMessage]) -> [String?] {
            StormRule().assess(calm, alerts: AlertBook(messages).events(at: nil, language: nil), now: noon).reasons
                .filter { $0.kind == .alert }.map(\.event)
        }
        #expect(reasons([twofold]) == ["Storm", "Rain"])
        #expect(reasons((0..<13).map { message("m\($0)", 0) }) == ["Storm"])
    }

    /// The messages come from a feed for many places.
    @Test func `a message without a drawn area is kept if its event has a drawn area`() {
        func drawn(_ identifier: String) -> AlertMessage {
            var message = message(identifier, 0)
            message.infos[0].areas = [AlertArea(name: "Here", circles: [.init(center: at(50, 10), kilometres: 50)])]
            return message
        }
        func coded(_ identifier: String, _ kind: AlertMessage.Kind, of reference: String) -> AlertMessage {
            var message = message(identifier, 10, kind == .cancel ? .alert : kind, of: [reference])
            message.kind = kind
            message.infos[0].areas = [AlertArea(name: "Coded")]
            return message
        }
        var book = AlertBook([drawn("a"), coded("b", .cancel, of: "a"), coded("c", .update, of: "elsewhere"), drawn("far")])
        book.removeDistant(at: at(50, 10), isAsked: false)
        #expect(book.events(at: at(50, 10), language: nil).map(\.state) == [.cancelled, .standing])
        #expect(Set(book.messages.map(\.identifier)) == ["a", "b", "far"])
        book.removeDistant(at: at(0, 0), isAsked: false)
        #expect(book.messages.isEmpty)
    }

    /// The message contains a gale in three languages, and frost only in English.
    @Test func `texts in the language of the reader are preferred, then English texts`() {
        func info(_ language: String, _ event: String, _ hazard: AlertHazard, _ severity: CAPSeverity) -> AlertInfo {
            AlertInfo(
                language: language, event: event, hazard: hazard, severity: severity, from: noon, until: noon + 3600, issuer: "X",
                areas: [])
        }
        let message = AlertMessage(
            identifier: "a", sent: noon,
            infos: [
                info("de-DE", "STURM", .wind, .severe), info("en-GB", "gale", .wind, .severe),
                info("en-GB", "frost", .other, .extreme),
                info("fr", "tempête", .wind, .severe),
            ])
        func events(_ language: String?) -> [String] {
            AlertBook([message]).events(at: nil, language: language).flatMap { $0.infos.map(\.event) }.sorted()
        }
        #expect(events("de") == ["STURM", "frost"] && events("fr") == ["frost", "tempête"])
        for language in ["en", "it", nil] { #expect(events(language) == ["frost", "gale"]) }
    }

    /// Each of a thousand events is issued, repeated, updated, and moved by hours. Each event has several zones, several
    /// languages and two sources. The messages arrive in parts and in any order.
    @Test func `each event leads to one notification inside its area and to none outside`() throws {
        let rule = StormRule(horizonHours: 168)
        for number in TableSample.rows(of: 0..<1000, in: "warnings") {
            var random = SplitMix(seed: 20_260_701 + UInt64(number))
            let lineage = Lineage(number, noon, &random)
            let inside = Desk(rule, at(50, 10)), outside = Desk(rule, at(52, 10))
            for step in lineage.steps {
                inside.look(step, at: lineage.now(step))
                outside.look(step, at: lineage.now(step))
            }
            #expect(inside.notices == 1 && outside.notices == 0, "event \(number): \(inside.notices), \(outside.notices)")
            #expect(inside.isShown == !lineage.isCancelled, "event \(number)")
            // Another user makes the first check of the warnings after all messages were sent.
            let late = Desk(rule, at(50, 10))
            late.look(lineage.steps.flatMap { $0 }.shuffled(using: &random), at: lineage.now(lineage.steps.last ?? []))
            #expect(late.notices == (lineage.isCancelled ? 0 : 1), "event \(number), late")
        }
    }
}

/// A user who checks the warnings repeatedly. The type contains the book of alerts (`AlertBook`), the rule (`StormRule`) and the
/// state of each storm (`StormLife`).
private final class Desk {
    private let rule: StormRule
    private let place: Coordinates
    private var book = AlertBook()
    private var storms: [Int64: StormLife] = [:]
    private(set) var notices = 0
    private var shown: Set<Int64> = []

    var isShown: Bool { !shown.isEmpty }

    init(_ rule: StormRule, _ place: Coordinates) { (self.rule, self.place) = (rule, place) }

    func look(_ messages: [AlertMessage], at now: Date, forecast: Forecast? = nil) {
        for message in messages { book.add(message) }
        let calm = Forecast(
            hours: (0..<30).map {
                ForecastHour(start: now + Double($0) * 3600, weatherCode: 3, precipitationMM: 0, gustsKMH: 10)
            })
        let seen = rule.assess(forecast ?? calm, alerts: book.events(at: place, language: "en"), now: now)
        let known = storms.filter { $0.value.outlook != .joined }.sorted { $0.key < $1.key }.map { (id: $0.key, life: $0.value) }
        let look = StormCheckData(seen, rule: rule, forecast: forecast ?? calm, fetchedAt: now, now: now)
        for change in StormLife.follow(known, look) {
            switch change {
            case .open(let life): storms[Int64(storms.count + 1)] = life
            case .change(let id, let life): storms[id] = life
            }
        }
        for id in storms.keys.sorted() {
            let before = storms[id]?.shown?.alerted.begins
            let commands =
                storms[id]?.handle(.checked(StormNotificationState(shown.contains(id) ? .visible : .none), now: now)) ?? []
            if commands.contains(.alert) {
                // If a warning begins three hours earlier than before, the user is alerted again.
                let begins = storms[id]?.shown?.alerted.begins ?? now
                let isEarlier = before.map { $0.timeIntervalSince(begins) >= StormLife.earlierStart } ?? false
                if !isEarlier { notices += 1 }
                shown.insert(id)
            }
            if commands.contains(.callOff) || commands.contains(.withdraw) { shown.remove(id) }
        }
    }
}

/// One weather event, as the messages of the weather services describe it. An event has several independent chains, for
/// example one chain for a county and one chain for a zone.
private struct Lineage {
    /// The new messages that each check receives.
    private(set) var steps: [[AlertMessage]] = []
    let isCancelled: Bool
    private let noon: Date

    init(_ number: Int, _ noon: Date, _ random: inout SplitMix) {
        self.noon = noon
        isCancelled = Bool.random(using: &random)
        let chains = Int.random(in: 1...13, using: &random)
        let updates = Int.random(in: 0...4, using: &random)
        var newest: [String] = (0..<chains).map { "\(number).\($0).0" }
        var from = Double.random(in: 4...12, using: &random)
        func area(_ latitude: Double) -> AlertArea {
            let corners = [(-0.5, -1.0), (-0.5, 1.0), (0.5, 1.0), (0.5, -1.0)]
            let ring = corners.compactMap { try? Coordinates(latitude: latitude + $0.0, longitude: 10 + $0.1) }
            return AlertArea(name: "Zone", polygons: [ring])
        }
        func infos(_ latitude: Double = 50) -> [AlertInfo] {
            ["en-US", "de-DE", "fr-FR"].map { language in
                AlertInfo(
                    language: language, event: "Thunderstorm", hazard: .thunderstorm, severity: .severe, from: noon + from * 3600,
                    until: noon + (from + 3) * 3600, issuer: "Service", areas: [area(latitude)])
            }
        }
        var clock = 0.0
        func issue(_ kind: AlertMessage.Kind, _ name: (Int) -> String, _ references: (Int) -> [String]) -> [AlertMessage] {
            (0..<chains).map { chain in
                AlertMessage(
                    identifier: name(chain), sent: noon + clock, kind: kind, references: references(chain),
                    infos: kind == .cancel ? [] : infos())
            }
        }
        steps.append(issue(.alert, { "\(number).\($0).0" }, { _ in [] }))
        for update in 0..<updates {
            clock += 60
            // The event is delayed by up to 36 hours, or begins up to four hours earlier.
            from = max(2, from + Double.random(in: -4...36, using: &random))
            let known = newest
            newest = newest.indices.map { "\(number).\($0).\(update + 1)" }
            steps.append(issue(.update, { "\(number).\($0).\(update + 1)" }, { [known[$0]] }))
            // The warning is split. One part of the warning continues in another area. The message about this part is sent 10
            // seconds before or after this message.
            if Int.random(in: 0..<3, using: &random) == 0 {
                let moment = Bool.random(using: &random) ? 10.0 : -10
                steps[steps.count - 1] += known.indices.map { chain in
                    AlertMessage(
                        identifier: "\(number).\(chain).\(update + 1).elsewhere", sent: noon + clock + moment, kind: .update,
                        references: [known[chain]], infos: infos(-30))
                }
            }
            // The user checks again, and receives only messages that the last check also received.
            if Bool.random(using: &random) { steps.append((steps.last ?? []).shuffled(using: &random)) }
        }
        guard isCancelled else { return }
        clock += 60
        let known = newest
        // Either one cancellation is sent for each chain, or one cancellation refers to all chains.
        if Bool.random(using: &random) {
            steps.append(issue(.cancel, { "\(number).\($0).end" }, { [known[$0]] }))
        } else {
            steps.append([AlertMessage(identifier: "\(number).end", sent: noon + clock, kind: .cancel, references: known)])
        }
    }

    /// Returns the time of a check: ten minutes after noon. Ten minutes after noon, no message has expired yet.
    func now(_ step: [AlertMessage]) -> Date { noon + 600 }
}
