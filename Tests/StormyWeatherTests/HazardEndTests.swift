import Foundation
import StormyWeather
import Testing

private func instant(_ text: String) -> Date { (try? Date(text, strategy: .iso8601)) ?? .distantPast }

/// Tests how the times in a message determine when the hazard ends.
@Suite struct HazardEndTests {
    private let sent = "2026-11-27T21:55:45+00:00"
    private let onset = "2026-11-28T17:55:45+00:00"
    private var begins: Date { instant("2026-11-28T17:55:45Z") }

    // MARK: The US service

    private func hurricane(expires: String?, ends: String? = nil, vtec: [String] = []) throws -> AlertMessage {
        func quoted(_ text: String?) -> String { text.map { "\"\($0)\"" } ?? "null" }
        let codes = vtec.map { "\"\($0)\"" }.joined(separator: ",")
        let json = """
            {"features":[{"geometry":null,"properties":{"id":"a","references":[],"sent":"\(sent)","effective":"\(sent)",
            "onset":"\(onset)","expires":\(quoted(expires)),"ends":\(quoted(ends)),"status":"Actual","messageType":"Alert",
            "severity":"Extreme","event":"Hurricane Warning","senderName":"NWS Test","parameters":{"VTEC":[\(codes)]}}}]}
            """
        return try #require(try AlertService.nws.read(Data(json.utf8), status: 200, now: instant(sent)).messages.first)
    }

    @Test func `a US warning that expires before it begins has an open end`() throws {
        for expires in ["2026-11-28T02:55:45Z", onset] {
            let info = try hurricane(expires: expires).infos[0]
            #expect(info.hasOpenEnd == true && info.from == begins && info.until == begins + 12 * 3600)
        }
        #expect(try hurricane(expires: nil).infos[0].hasOpenEnd == true, "the warning has no end time")
    }

    @Test func `a US warning until further notice has an open end`() throws {
        let code = "/O.NEW.KMFL.HU.W.1011.261128T1755Z-000000T0000Z/"
        let info = try hurricane(expires: "2026-11-29T02:00:00Z", vtec: [code]).infos[0]
        #expect(info.hasOpenEnd == true && info.from == begins && info.until == instant("2026-11-29T14:00:00Z"))
    }

    @Test func `a US warning with an end, or that expires after it begins, ends then`() throws {
        let code = "/O.NEW.KMFL.HU.W.1011.261128T1755Z-261130T0000Z/"
        for (expires, ends) in [("2026-11-28T02:55:45Z", "2026-11-30T00:00:00Z"), ("2026-11-30T00:00:00Z", nil)] {
            let info = try hurricane(expires: expires, ends: ends, vtec: [code]).infos[0]
            #expect(info.hasOpenEnd == nil && info.until == instant("2026-11-30T00:00:00Z"))
        }
        let over = try hurricane(expires: "2026-11-27T21:00:00Z").infos[0]
        #expect(
            over.hasOpenEnd == nil && over.until == instant("2026-11-27T21:00:00Z"),
            "the warning had already ended when it was sent")
    }

    @Test func `a US warning without an end counts until the service does not list it`() throws {
        let message = try hurricane(expires: "2026-11-28T02:55:45Z")
        var book = AlertBook()
        for hour in stride(from: 0.0, through: 24 * 30, by: 24) {
            let (now, before) = (instant(sent) + hour * 3600, book.messages)
            book.add(message)
            book.endMissingWarnings(from: [message], before, now: now)
            book.prune(before: now - 3 * 86_400)
            let events = book.events(at: nil, language: nil, now: now, listedAt: now)
            let seen = StormRule(horizonHours: 48).assess(calm(now), alerts: events, now: now)
            #expect(seen.reasons.map(\.event) == ["Hurricane Warning"] && seen.reasons[0].hasOpenEnd == true, "after \(hour) h")
            #expect(seen.reasons.allSatisfy { $0.until >= max(begins, now) + 12 * 3600 })
        }
        let (now, before) = (instant(sent) + 31 * 86_400, book.messages)
        book.endMissingWarnings(from: [], before, now: now)
        #expect(book.events(at: nil, language: nil, now: now, listedAt: now).map(\.state) == [.cancelled])
        book.prune(before: now + 86_400)
        #expect(book.messages.isEmpty, "a cancelled warning is removed")
    }

    @Test func `a warning with an open end expires if its service does not respond for days`() throws {
        let message = try hurricane(expires: "2026-11-28T02:55:45Z")
        func end(_ listedAt: Date) -> Date? {
            AlertBook([message]).events(at: nil, language: nil, listedAt: listedAt).first?.infos.first?.until
        }
        #expect(end(begins) == begins + 36 * 3600 && end(begins + 3600) == begins + 37 * 3600)
        #expect(end(instant(sent)) == instant(sent) + 36 * 3600 && end(.distantPast) == begins + 12 * 3600)
    }

    private func calm(_ now: Date) -> Forecast {
        Forecast(
            hours: (0..<30).map {
                ForecastHour(start: now + Double($0) * 3600, weatherCode: 3, precipitationMM: 0, gustsKMH: 10)
            })
    }

    // MARK: CAP documents

    private func cap(_ times: String, _ parameter: (name: String, value: String)? = nil) throws -> AlertMessage {
        let element =
            parameter.map { "<parameter><valueName>\($0.name)</valueName><value>\($0.value)</value></parameter>" } ?? ""
        let text = """
            <alert><identifier>a</identifier><sender>s</sender><sent>\(sent)</sent><status>Actual</status><msgType>Alert</msgType>
            <info><event>Hurricane</event><severity>Extreme</severity>\(times)\(element)</info></alert>
            """
        return try #require(try CAPDocument.parse(Data(text.utf8)))
    }

    @Test func `a CAP document ends with its message unless that is before the hazard`() throws {
        func info(_ expires: String, _ parameter: (name: String, value: String)? = nil) throws -> AlertInfo {
            try cap("<onset>\(onset)</onset><expires>\(expires)</expires>", parameter).infos[0]
        }
        let after = try info("2026-11-28T20:00:00+01:00")
        #expect(after.hasOpenEnd == nil && after.until == instant("2026-11-28T19:00:00Z"))
        for expires in ["2026-11-28T02:55:45Z", "2026-11-28T18:55:45+01:00"] {
            let before = try info(expires)
            #expect(before.hasOpenEnd == true && before.from == begins && before.until == begins + 12 * 3600)
            #expect(try info(expires, ("eventEndingTime", "2026-11-29T00:00:00Z")).until == instant("2026-11-29T00:00:00Z"))
        }
        #expect(try info("2026-11-29T00:00:00Z", ("VTEC", "/O.NEW.KMFL.HU.W.1011.261128T1755Z-000000T0000Z/")).hasOpenEnd == true)
        let over = try info("2026-11-27T21:00:00Z")
        #expect(
            over.hasOpenEnd == nil && over.until == instant("2026-11-27T21:00:00Z"),
            "the warning had already ended when it was sent")
    }

    @Test(arguments: ["", "<onset>2026-11-27T20:00:00Z</onset>", "<effective>2026-11-26T20:00:00Z</effective>"])
    func `a document without an end counts while its feed lists it`(_ times: String) throws {
        let message = try cap(times)
        let start = instant(sent)
        func reasons(_ book: AlertBook, _ now: Date) -> [String?] {
            let events = book.events(at: nil, language: nil, now: now, listedAt: now)
            return StormRule().assess(calm(now), alerts: events, now: now).reasons.map(\.event)
        }
        var book = AlertBook()
        for hours: Double in [0, 11, 13, 24, 48, 99 * 24] {
            book.add([message])
            #expect(reasons(book, start + hours * 3600) == ["Hurricane"], "\(hours)")
        }
        #expect(reasons(book, start + 101 * 86_400).isEmpty, "an archive of old warnings")
        book.assumeUnlistedEnds(by: [])
        #expect(reasons(book, start + 11 * 3600) == ["Hurricane"] && reasons(book, start + 13 * 3600).isEmpty)
    }

    @Test func `the open end of a document is assumed once its feed does not list it`() throws {
        let message = try cap("<onset>\(onset)</onset><expires>2026-11-28T02:55:45Z</expires>")
        var book = AlertBook([message])
        func end() -> Date? {
            book.events(at: nil, language: nil, listedAt: begins + 2 * 86_400).first?.infos.first?.until
        }
        #expect(end() == begins + 2 * 86_400 + 36 * 3600)
        book.assumeUnlistedEnds(by: [])
        #expect(end() == begins + 12 * 3600)
        book.add(message)
        #expect(end() == begins + 2 * 86_400 + 36 * 3600, "the service lists the warning again")
    }

    // MARK: Other services

    @Test func `a German warning without an end is open`() throws {
        func info(_ expires: String) throws -> AlertInfo? {
            let json = """
                {"alerts":[{"alert_id":"a","status":"actual","effective":"\(sent)","onset":"\(onset)","expires":\(expires),
                "event_en":"gale","severity":"severe"}]}
                """
            return try AlertService.brightSky.read(Data(json.utf8), status: 200, now: .now).messages.first?.infos.first
        }
        #expect(try info("null")?.hasOpenEnd == true && info("null")?.until == begins + 12 * 3600)
        #expect(try info("\"2026-11-28T02:00:00Z\"")?.hasOpenEnd == true)
        #expect(try info("\"2026-11-29T00:00:00Z\"")?.hasOpenEnd == nil)
    }

    @Test func `a Norwegian warning that ends before it begins is open`() throws {
        func info(_ end: String, _ ending: String) throws -> AlertInfo? {
            let json = """
                {"features":[{"properties":{"id":"a","event":"wind","status":"Actual"\(ending)},
                "when":{"interval":["\(onset)","\(end)"]}}]}
                """
            return try AlertService.metNorway.read(Data(json.utf8), status: 200, now: .now).messages.first?.infos.first
        }
        #expect(try info("2026-11-28T02:00:00Z", "")?.hasOpenEnd == true)
        #expect(try info("2026-11-29T00:00:00Z", "")?.until == instant("2026-11-29T00:00:00Z"))
        let ending = ",\"eventEndingTime\":\"2026-11-29T00:00:00Z\""
        #expect(try info("2026-11-28T02:00:00Z", ending)?.hasOpenEnd == nil)
    }

    // MARK: Texts

    @Test func `texts say that no end is given`() {
        let british = Locale(identifier: "en_GB")
        func body(_ reasons: [StormReason], _ now: Date?, zone: TimeZone = .gmt) -> String {
            StormText.body(reasons, timeZone: zone, reader: .gmt, locale: british, units: .metric, now: now)
        }
        var warning = StormReason(
            kind: .alert, peak: 4, from: begins, until: begins + 86_400, source: "NWS", event: "Hurricane Warning")
        warning.hasOpenEnd = true
        let gusts = StormReason(kind: .gusts, peak: 120, from: begins + 3600, until: begins + 7200)
        #expect(body([warning], begins - 60) == "Hurricane Warning from 17:55, no end given.")
        #expect(body([warning], nil) == "Hurricane Warning from 17:55, no end given.")
        #expect(body([warning], begins) == "Hurricane Warning, no end given.")
        #expect(body([warning, gusts], begins).hasSuffix("no end given, gusts up to 120 km/h 18:55–19:55."))
        let zone = TimeZone(identifier: "America/New_York") ?? .gmt
        #expect(body([warning], nil, zone: zone).contains("from 12:55 (America/New_York time), no end given"))
        let span = StormText.span(warning.window, hasOpenEnd: true, timeZone: .gmt, reader: .gmt, locale: british)
        #expect(span == "from 17:55, no end given")
    }

    @Test func `a warning has no end if one of its messages has none`() throws {
        let closed = try hurricane(expires: "2026-11-29T02:00:00Z")
        var open = try hurricane(expires: "2026-11-28T02:55:45Z")
        open.identifier = "b"
        for messages in [[closed, open], [open, closed]] {
            let events = AlertBook(messages).events(at: nil, language: nil, listedAt: begins)
            let seen = StormRule().assess(calm(begins), alerts: events, now: begins)
            #expect(seen.reasons.count == 1 && seen.reasons[0].hasOpenEnd == true)
        }
    }
}
