import Foundation
import StormyWeather
import Testing

private func instant(_ text: String) -> Date { (try? Date(text, strategy: .iso8601)) ?? .distantPast }

private func at(_ latitude: Double, _ longitude: Double) throws -> Coordinates {
    try Coordinates(latitude: latitude, longitude: longitude)
}

private let host = "https://feeds.meteoalarm.org/api/v1/warnings"

/// An entry in the format of MeteoAlarm's feeds.
private struct Entry {
    var country = "france"
    var document = "one"
    /// The area of the entry, as `<cap:geocode>` or `<cap:polygon>`.
    var area = code("EMMA_ID", "FR035")
    var title = "Orange Wind Warning issued for France - Haute Savoie"
    var status = "Actual"
    var updated = "2026-07-01T12:00:00Z"
    var index = "index_info=0&amp;index_area=0&amp;index_geocode=0"
    var link: String?

    static func code(_ type: String, _ value: String) -> String {
        "<cap:geocode><valueName>\(type)</valueName><value>\(value)</value></cap:geocode>"
    }

    static func polygon(_ corners: String) -> String { "<cap:polygon>\(corners)</cap:polygon>" }

    var text: String {
        let address = link ?? "\(host)/feeds-\(country)/\(document)"
        return """
            <entry>\(area)<link href="https://meteoalarm.org?geocode=x" hreflang="en" title="x"/><cap:areaDesc>x</cap:areaDesc>
            <cap:event>Orange wind warning</cap:event><cap:sent>\(updated)</cap:sent><cap:expires>2026-07-02T00:00:00+00:00</cap:expires>
            <cap:effective>2026-07-01T12:00:00+00:00</cap:effective><cap:onset>2026-07-01T14:00:00+00:00</cap:onset>
            <cap:certainty>Likely</cap:certainty><cap:severity>Severe</cap:severity><cap:urgency>Expected</cap:urgency>
            <cap:scope>Public</cap:scope><cap:message_type>Alert</cap:message_type><cap:status>\(status)</cap:status>
            <cap:identifier>2.49.0.0.250.0.\(document)</cap:identifier><link href="\(address)" type="application/cap+xml"/>
            <link href="https://meteoalarm.org?region=FR" hreflang="en" rel="related" title="France"/>
            <author><name>meteoalarm.org</name><uri>https://meteoalarm.org</uri></author><published>\(updated)</published>
            <id>\(address)?\(index)</id><title>\(title)</title><updated>\(updated)</updated></entry>
            """
    }
}

private func feed(_ entries: [Entry], updated: String = "<updated>2026-07-01T12:07:55.906349Z</updated>") -> Data {
    Data(
        """
        <?xml version="1.0" encoding="UTF-8"?>
        <feed xmlns="http://www.w3.org/2005/Atom" xmlns:cap="urn:oasis:names:tc:emergency:cap:1.2">
        <link href="https://pubsubhubbub.appspot.com/" rel="hub"/><generator>MeteoAlarm Producer Server</generator>
        <author><name>meteoalarm.org</name></author><id>tag:meteoalarm.org,2021-02-19:FR</id>
        <title>MeteoAlarm - Alerting Europe for Extreme Weather</title>\(updated)\(entries.map(\.text).joined())</feed>
        """.utf8)
}

@Suite struct MeteoAlarmFeedTests {
    private func read(_ entries: [Entry], baseURL: String? = nil) throws -> MeteoAlarmFeed {
        try MeteoAlarmFeed(reading: feed(entries), status: 200, baseURL: baseURL)
    }

    private func documents(_ content: MeteoAlarmFeed.Content) -> [String] {
        content.entries.compactMap { entry in
            guard case .link(let address, _) = entry else { return nil }
            return address.split(separator: "/").last.map(String.init)
        }
    }

    // MARK: Documents of a place

    @Test func `only the warnings of the place's regions are fetched`() throws {
        let codes = [
            ("savoie", Entry.code("EMMA_ID", "FR035")), ("ain", Entry.code("EMMA_ID", "FR039")),
            ("nuts", Entry.code("NUTS3", "FR718")),
            ("sea", Entry.code("EMMA_ID", "ES840")), ("list", Entry.code("EMMA_ID", "FR001,FR035")),
        ]
        let found = try read(codes.map { Entry(document: $0.0, area: $0.1) })
        #expect(found.count == 5 && found.updated == instant("2026-07-01T12:07:55Z"))
        let annecy = found.content(at: try at(45.8992, 6.1294))
        #expect(documents(annecy) == ["list", "nuts", "savoie"] && annecy.unknownCodes.isEmpty)
        #expect(documents(found.content(at: try at(46.2056, 5.2258))) == ["ain"])
        #expect(found.content(at: try at(48.86, 2.35)).entries.isEmpty)
    }

    @Test func `a drawn entry is compared by its polygon`() throws {
        let scotland = Entry.polygon("58.9,-6.5 58.9,-1.5 55.9,-1.5 55.9,-6.5 58.9,-6.5")
        let found = try read([
            Entry(country: "united-kingdom", document: "scotland", area: scotland),
            Entry(country: "united-kingdom", document: "codes", area: Entry.code("EMMA_ID", "UK003")),
        ])
        let perth = found.content(at: try at(56.3950, -3.4308))
        #expect(documents(perth) == ["scotland", "codes"], "the document of the other entry may be drawn")
        #expect(perth.unknownCodes == [RegionCode(type: "EMMA_ID", value: "UK003")])
        #expect(try documents(found.content(at: at(51.5, -0.12))) == ["codes"])
    }

    @Test func `an entry with neither an area nor a code is decided by its document`() throws {
        let found = try read([Entry(document: "vague", area: ""), Entry(document: "ain", area: Entry.code("EMMA_ID", "FR039"))])
        #expect(documents(found.content(at: try at(45.8992, 6.1294))) == ["vague"])
    }

    @Test func `an unknown code is reported once and the code of another entry counts`() throws {
        let found = try read([
            Entry(document: "a", area: Entry.code("EMMA_ID", "FR777")),
            Entry(document: "b", area: Entry.code("emma_id", "fr777")),
            Entry(document: "c", area: Entry.code("EMMA_ID", "FR777")),
            Entry(document: "c", area: Entry.code("EMMA_ID", "FR035")),
            Entry(document: "d", area: Entry.code("WARNCELLID", "803401004")),
        ])
        let content = found.content(at: try at(45.8992, 6.1294))
        #expect(content.unknownCodes == [RegionCode(type: "EMMA_ID", value: "FR777")])
        #expect(content.unknownCodes[0].text == "EMMA_ID FR777" && documents(content) == ["c", "a", "b", "d"])
    }

    @Test func `a warning whose entries cannot be placed is decided by its document`() throws {
        let areas = [
            ("type", Entry.code("ISO3166-2", "FR-74")), ("code", Entry.code("NUTS3", "FR-7")),
            ("other", Entry.code("EMMA_ID", "FR039")), ("empty", Entry.code("EMMA_ID", "")),
        ]
        let entries = areas.map { Entry(document: $0.0, area: $0.1) }
        let annecy = try read(entries).content(at: at(45.8992, 6.1294))
        #expect(documents(annecy) == ["code", "empty", "type"])
        // The region of this entry is known, and is not the region of the place. The document of the entry is therefore not for
        // this place.
        let known = Entry(document: "type", area: Entry.code("EMMA_ID", "FR039"))
        #expect(try documents(read(entries + [known]).content(at: at(45.8992, 6.1294))) == ["code", "empty"])
    }

    @Test func `documents that may be for other places do not displace documents of the place`() throws {
        let unknown = (0..<AlertFeed.mostLinks).map {
            Entry(document: "u\($0)", area: Entry.code("WARNCELLID", "\($0)"), updated: "2026-07-01T13:00:00Z")
        }
        let content = try read(unknown + [Entry(document: "meant")]).content(at: at(45.8992, 6.1294))
        #expect(documents(content).first == "meant" && content.leftOut == 1)
    }

    @Test func `the unknown code of a drawn area is not reported`() throws {
        let drawn = Entry.polygon("47,8 48,8 48,9 47,9 47,8") + Entry.code("EMMA_ID", "FR777")
        let content = try read([Entry(document: "drawn", area: drawn)]).content(at: try at(47.3769, 8.5417))
        #expect(documents(content) == ["drawn"] && content.unknownCodes.isEmpty)
    }

    @Test func `level 1 and tests are not warnings`() throws {
        let found = try read([
            Entry(document: "green", title: "Green Thunderstorm Warning issued for Belgium - Liège"),
            Entry(document: "test", status: "Test"),
            Entry(document: "exercise", status: "Exercise"),
            Entry(document: "yellow", title: "Yellow Fog Warning issued for Greenland"),
        ])
        #expect(documents(found.content(at: try at(45.8992, 6.1294))) == ["yellow"])
    }

    // MARK: Order and size

    @Test func `repeated and reordered entries change nothing`() throws {
        var entries = (0..<12).map { Entry(document: "\($0 % 6)", updated: "2026-07-01T1\($0 % 3):00:00Z") }
        // These entries lead to the same document, in several languages and areas.
        entries += ["index_info=1", "index_area=1"].map { Entry(document: "0", updated: "2026-07-01T10:00:00Z", index: $0) }
        let place = try at(45.8992, 6.1294)
        let first = try read(entries).content(at: place)
        #expect(documents(first) == ["2", "5", "1", "4", "0", "3"])
        for turn in 1..<entries.count {
            #expect(try read(Array(entries[turn...] + entries[..<turn])).content(at: place) == first)
        }
        #expect(try read(entries.reversed() + entries).content(at: place) == first)
    }

    @Test func `the newest time of a document counts and one without an offset is UTC`() throws {
        let found = try read([
            Entry(document: "a", updated: "2026-07-01T12:00:00"), Entry(document: "a", updated: "2026-07-01T11:00:00+00:00"),
            Entry(document: "b", updated: "2026-07-01T13:30:00+02:00"), Entry(document: "c", updated: "soon"),
        ])
        let content = found.content(at: try at(45.8992, 6.1294))
        #expect(
            content.entries == [
                .link("\(host)/feeds-france/c", updated: "soon"), .link("\(host)/feeds-france/a", updated: "2026-07-01T12:00:00"),
                .link("\(host)/feeds-france/b", updated: "2026-07-01T13:30:00+02:00"),
            ])
        let none = try MeteoAlarmFeed(reading: feed([], updated: ""), status: 200)
        #expect(none.updated == nil && none.count == 0)
    }

    @Test func `a feed of 9 MB with 2,000 entries is read`() throws {
        let ring = (0..<250).map { "4\($0 % 10).\($0),1\($0 % 10).\($0 + 1000)" }.joined(separator: " ")
        var entries = (0..<2000).map { Entry(country: "switzerland", document: "\($0)", area: Entry.polygon(ring)) }
        entries.append(Entry(country: "switzerland", document: "meant", area: Entry.polygon("47,8 48,8 48,9 47,9 47,8")))
        let data = feed(entries)
        #expect(data.count > 9_000_000 && data.count < MeteoAlarmFeed.maximumBytes)
        let found = try MeteoAlarmFeed(reading: data, status: 200)
        let zurich = found.content(at: try at(47.3769, 8.5417))
        #expect(found.count == 2001 && documents(zurich).contains("meant"))
    }

    @Test func `no more than 1,000 documents are fetched and the oldest are left out`() throws {
        let entries = (0..<1100).map { number in
            Entry(document: "\(number)", updated: "2026-07-\(10 + number / 100)T12:\(10 + number % 50):00Z")
        }
        let content = try read(entries).content(at: try at(45.8992, 6.1294))
        #expect(content.entries.count == AlertFeed.mostLinks && content.leftOut == 100)
        #expect(!documents(content).contains("0") && documents(content).contains("1099"))
    }

    // MARK: Addresses

    @Test func `a replaced host is used for the feed and its documents`() throws {
        let request = try MeteoAlarmFeed.request(for: .northMacedonia)
        #expect(request.url == "https://feeds.meteoalarm.org/feeds/meteoalarm-legacy-atom-republic-of-north-macedonia")
        #expect(request.headers["Accept"]?.contains("*/*") == true)
        let base = "http://127.0.0.1:8080/mirror"
        #expect(try MeteoAlarmFeed.request(for: .france, baseURL: base).url == base + "/feeds/meteoalarm-legacy-atom-france")
        #expect(throws: WeatherRequestError.self) { try MeteoAlarmFeed.request(for: .france, baseURL: "nothing") }
        let links = [
            "\(host)/feeds-france/a", "https://hub.meteoalarm.org/warnings/b?x=1", "\(base)/c", "/api/d",
            "http://127.0.0.1:8081/e",
            "https://meteoalarm.org.example/f", "javascript:alert(1)",
        ]
        let place = try at(45.8992, 6.1294)
        func addresses(_ baseURL: String?) throws -> Set<String> {
            Set(
                try read(links.map { Entry(link: $0) }, baseURL: baseURL).content(at: place).entries.compactMap { entry in
                    guard case .link(let address, _) = entry else { return nil }
                    return address
                })
        }
        let mirrored = [
            base + "/api/v1/warnings/feeds-france/a", base + "/warnings/b?x=1", base + "/c",
        ]
        #expect(try addresses(base).isSuperset(of: mirrored))
        #expect(try addresses(base).allSatisfy { $0.hasPrefix(base + "/") })
        let official = try addresses(nil)
        #expect(official == [links[0], links[1], "https://feeds.meteoalarm.org/api/d"])
        #expect(try read(links.map { Entry(link: $0) }).content(at: place).leftOut == 4)
    }

    @Test func `an unusable link counts only at the places that its entry may concern`() throws {
        let (annecy, lyon) = (try at(45.8992, 6.1294), try at(45.7640, 4.8357))
        func leftOut(_ area: String) throws -> [Int] {
            let found = try read([Entry(area: area, link: "https://example.com/f")])
            return [annecy, lyon].map { found.content(at: $0).leftOut }
        }
        #expect(try leftOut(Entry.code("EMMA_ID", "FR035")) == [1, 0])
        #expect(try leftOut("<cap:polygon>45,4 46,4 46,5.5 45,5.5 45,4</cap:polygon>") == [0, 1])
        #expect(try leftOut(Entry.code("EMMA_ID", "FR777")) == [1, 1], "an unknown area")
        #expect(try leftOut("") == [1, 1], "no area")
    }

    // MARK: Responses that are not a feed

    @Test func `a wrong slug and other refusals are errors`() {
        func error(_ status: Int, _ text: String = "") -> WeatherError? {
            do {
                _ = try MeteoAlarmFeed(reading: Data(text.utf8), status: status)
                return nil
            } catch { return error }
        }
        guard case .service(404, let reason)? = error(404, "Not Found") else {
            Issue.record("404 is no error")
            return
        }
        #expect(reason.contains("no feed") && error(304) == .notModified && error(429) == .rateLimited(reason: ""))
        #expect(error(406) == .service(status: 406, reason: "") && error(503) == .service(status: 503, reason: ""))
        for text in ["", "<html><body>Log in</body></html>", "{}", "<feed", "<rss><channel/></rss>", "<alert/>"] {
            #expect(error(200, text) == .notCAP, "\(text)")
        }
        let large = MeteoAlarmFeed.maximumBytes + 1
        let tooLarge = #expect(throws: WeatherError.self) { try MeteoAlarmFeed(reading: Data(count: large), status: 200) }
        #expect(tooLarge == .tooLarge(bytes: large, most: MeteoAlarmFeed.maximumBytes))
        #expect(tooLarge?.message.contains("\(MeteoAlarmFeed.maximumBytes)") == true)
    }

    @Test func `a feed that is cut off is refused`() {
        let data = feed([Entry(), Entry(document: "two")])
        for count in stride(from: 0, to: data.count - 8, by: 11) {
            #expect(throws: WeatherError.notCAP, "\(count)") { try MeteoAlarmFeed(reading: data.prefix(count), status: 200) }
        }
    }
}

/// Returns a CAP document with the area that a test specifies.
private func document(_ area: String, parameters: String = "", event: String = "Storm") -> Data {
    Data(
        """
        <?xml version="1.0" encoding="UTF-8"?>
        <alert xmlns="urn:oasis:names:tc:emergency:cap:1.2"><identifier>one</identifier><sender>a@b</sender>
        <sent>2026-07-01T12:00:00+02:00</sent><status>Actual</status><msgType>Alert</msgType>
        <info><language>de-DE</language><event>\(event)</event><severity>Severe</severity><onset>2026-07-01T14:00:00+02:00</onset>
        <expires>2026-07-01T20:00:00+02:00</expires>\(parameters)<area><areaDesc>Here</areaDesc>\(area)</area></info></alert>
        """.utf8)
}

@Suite struct MeteoAlarmServiceTests {
    @Test func `a place has one request for each country`() throws {
        let service = AlertService.meteoAlarm
        let braunau = try service.requests(for: at(48.2593, 13.0335)).map(\.url)
        let base = "https://feeds.meteoalarm.org/feeds/meteoalarm-legacy-atom-"
        #expect(braunau == [base + "austria", base + "germany"])
        #expect(try service.request(for: at(48.2593, 13.0335)).url == base + "austria")
        #expect(
            try service.requests(for: at(47.3769, 8.5417), baseURL: "http://127.0.0.1:1").map(\.url) == [
                "http://127.0.0.1:1/feeds/meteoalarm-legacy-atom-switzerland"
            ])
        let sydney = try at(-33.87, 151.21)
        #expect(try service.requests(for: sydney).isEmpty && !service.covers(sydney))
        #expect(throws: WeatherRequestError.notCovered) { try service.request(for: sydney) }
        #expect(try service.covers(at(48.2593, 13.0335)) && !service.needsContact)
        #expect(try AlertService.nws.requests(for: at(40, -100)).count == 1)
    }

    @Test func `a document is read and its issuer is named`() throws {
        let service = AlertService.meteoAlarm
        let answer = try service.read(document("<polygon>45,4 46,4 46,5.5 45,5.5</polygon>"), status: 200, now: .now)
        #expect(answer.messages.count == 1 && answer.unreadable == 0)
        for status in [404, 500] {
            #expect(throws: WeatherError.service(status: status, reason: "")) {
                try service.read(Data(), status: status, now: .now)
            }
        }
        #expect(throws: WeatherError.notCAP) { try service.read(feed([Entry()]), status: 200, now: .now) }
        #expect(service.attribution(issuer: "Météo-France") == "Météo-France, EUMETNET – MeteoAlarm; delays are possible")
        #expect(service.name == "MeteoAlarm" && AlertService.nws.attribution(issuer: "") == "US National Weather Service")
    }
}

@Suite struct CodedAlertTests {
    private func code(_ type: String, _ value: String) -> String {
        "<geocode><valueName>\(type)</valueName><value>\(value)</value></geocode>"
    }

    private func isMeant(_ area: String, at place: Coordinates) throws -> Bool {
        let message = try #require(try CAPDocument.parse(document(area)))
        var book = AlertBook([message])
        book.removeDistant(at: place, isAsked: false)
        return book.events(at: place, language: nil).contains { !$0.infos.isEmpty }
    }

    @Test func `a warning that names its area by code holds in the region`() throws {
        let (annecy, lyon) = (try at(45.8992, 6.1294), try at(45.7640, 4.8357))
        for area in [code("EMMA_ID", "FR035"), code("NUTS3", "FR718"), code("EMMA_ID", "FR001") + code("EMMA_ID", "FR035")] {
            #expect(try isMeant(area, at: annecy), "\(area)")
            #expect(try !isMeant(area, at: lyon), "\(area)")
        }
        #expect(try isMeant(code("NUTS3", "BG411"), at: at(42.6977, 23.3219)))
        #expect(try isMeant(code("EMMA_ID", "CZ01000"), at: at(50.0875, 14.4213)))
        #expect(try isMeant(code("FIPS", "EI07"), at: at(53.3498, -6.2603)))
    }

    @Test func `a sea area's code does not hold on land`() throws {
        for (latitude, longitude, value) in [
            (54.1810, 7.8860, "DE803"), (43.4623, -3.8100, "ES842"), (55.1004, 14.7060, "DK820"),
        ] {
            #expect(try !isMeant(code("EMMA_ID", value), at: at(latitude, longitude)), "\(value)")
        }
    }

    @Test func `a drawn area counts before the code`() throws {
        let lyon = "<polygon>45,4 46,4 46,5.5 45,5.5 45,4</polygon>" + code("EMMA_ID", "FR035")
        #expect(try isMeant(lyon, at: at(45.7640, 4.8357)))
        #expect(try !isMeant(lyon, at: at(45.8992, 6.1294)))
    }

    @Test func `a warning with unknown codes alone is reported with its codes`() throws {
        let area = code("EMMA_ID", "FR777") + code("EMMA_ID", "FR777") + code("WARNCELLID", "1") + code("SAME", "006037")
        let message = try #require(try CAPDocument.parse(document(area)))
        #expect(message.isCodedOnly && message.unknownCodes == [RegionCode(type: "EMMA_ID", value: "FR777")])
        let known = try #require(try CAPDocument.parse(document(code("EMMA_ID", "FR035"))))
        #expect(!known.isCodedOnly && known.unknownCodes.isEmpty)
    }

    @Test func `level 1 is not a warning in any language`() throws {
        for level in ["1; green; Minor", "1", " 1 ;green", "1;vert"] {
            let parameter = "<parameter><valueName>awareness_level</valueName><value>\(level)</value></parameter>"
            let message = try #require(try CAPDocument.parse(document(code("EMMA_ID", "FR035"), parameters: parameter)))
            #expect(message.infos.isEmpty, "\(level)")
        }
        let orange = "<parameter><valueName>awareness_level</valueName><value>3; orange; Severe</value></parameter>"
        #expect(try CAPDocument.parse(document(code("EMMA_ID", "FR035"), parameters: orange))?.infos.count == 1)
    }

    @Test func `a document whose times have no offset still warns`() throws {
        let text = String(decoding: document(code("EMMA_ID", "FR035")), as: UTF8.self).replacing("+02:00<", with: "<")
        let message = try #require(try CAPDocument.parse(Data(text.utf8)))
        #expect(message.sent == instant("2026-07-01T12:00:00Z"))
        // The hazard lasts from 14:00 in the earliest time zone until 20:00 in the latest time zone.
        #expect(message.infos.map(\.from) == [instant("2026-07-01T00:00:00Z")])
        #expect(message.infos.map(\.until) == [instant("2026-07-02T08:00:00Z")])
    }

    @Test func `codes are stored with a message and rows without codes are read`() throws {
        let area = AlertArea(name: "x", codes: [RegionCode(type: "EMMA_ID", value: "FR035")])
        let stored = try JSONEncoder().encode(area)
        #expect(try JSONDecoder().decode(AlertArea.self, from: stored) == area)
        let old = Data(#"{"name":"x","polygons":[],"circles":[]}"#.utf8)
        #expect(try JSONDecoder().decode(AlertArea.self, from: old) == AlertArea(name: "x"))
        #expect(String(decoding: try JSONEncoder().encode(AlertArea(name: "x")), as: UTF8.self).contains("codes") == false)
    }
}
