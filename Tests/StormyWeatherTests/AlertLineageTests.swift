import Foundation
import StormyWeather
import Testing

/// Tests which of several messages are valid if they refer to each other.
@Suite struct AlertLineageTests {
    private let noon = Date(timeIntervalSince1970: 1_782_907_200)

    private func message(
        _ identifier: String, _ minute: Double, _ kind: AlertMessage.Kind = .alert, of references: [String] = [],
        sender: String? = nil, link: String? = nil, from: Double = 2, event: String? = nil, hazard: AlertHazard = .wind,
        severity: CAPSeverity? = .severe, areas: [AlertArea] = []
    ) -> AlertMessage {
        let info = AlertInfo(
            event: event ?? identifier, hazard: hazard, severity: severity, from: noon + from * 3600,
            until: noon + (from + 3) * 3600,
            issuer: "Met", areas: areas)
        var message = AlertMessage(
            identifier: identifier, sent: noon + minute * 60, kind: kind, references: references,
            infos: kind == .cancel ? [] : [info])
        (message.sender, message.link) = (sender, link)
        return message
    }

    /// Returns the identifiers of the messages that belong to valid events. The messages may arrive in any order.
    private func standing(_ messages: [AlertMessage], now: Date = .distantFuture) -> Set<String> {
        func seen(_ messages: [AlertMessage]) -> Set<String> {
            var book = AlertBook()
            for message in messages { book.add(message) }
            return Set(book.events(at: nil, language: nil, now: now).flatMap(\.infos).map(\.event))
        }
        let found = seen(messages)
        #expect(seen(messages.reversed()) == found)
        #expect(seen(messages + messages) == found)
        return found
    }

    private func unused(_ messages: [AlertMessage], now: Date = .distantFuture) -> [String] {
        AlertBook(messages).unusedReferences(of: messages, now: now)
    }

    // MARK: Updates

    @Test func `an update never replaces itself`() {
        let itself = message("a", 10, .update, of: ["a"])
        #expect(standing([itself]) == ["a"])
        #expect(standing([message("a", 0), itself]) == ["a"], "the update keeps the identifier of the warning")
        #expect(standing([message("z", 0), message("a", 10, .update, of: ["a", "z"])]) == ["a"])
        #expect(unused([itself]) == ["the update a refers to itself, and counts as a separate warning"])
        #expect(standing([itself, message("c", 20, .cancel, of: ["a"])]).isEmpty)
    }

    @Test func `an update with the identifier of its warning has the content that was sent last`() {
        var later = message("a", 10, .update, of: ["a"], from: 8)
        later.infos[0].event = "later"
        #expect(standing([message("a", 0), later]) == ["later"])
        var same = later
        same.infos[0].event = "same time"
        #expect(AlertBook([later, same]).events(at: nil, language: nil).flatMap(\.infos).map(\.event) == ["same time"])
    }

    /// All updates have the same time, because an update does not replace messages that were sent after it.
    @Test func `a circle leaves its newest`() {
        let pair = [message("a", 0, .update, of: ["b"]), message("b", 0, .update, of: ["a"])]
        #expect(standing(pair) == ["b"])
        #expect(unused(pair) == ["2 updates replace each other, and the newest update counts (b)"])
        for step in [1, 2] {
            // In the first case, each message refers to the message two positions after it. In the second case, it refers to the
            // message before it.
            let circle = (0..<5).map { message("\($0)", 0, .update, of: ["\((($0 + step * 2) + 5) % 5)"]) }
            #expect(standing(circle) == ["4"])
            #expect(unused(circle).count == 1)
        }
    }

    @Test func `a circle is replaced and cancelled as one warning`() {
        let pair = [message("a", 0, .update, of: ["b"]), message("b", 0, .update, of: ["a"])]
        #expect(standing([message("z", -10)] + [message("a", 0, .update, of: ["b", "z"]), pair[1]]) == ["b"])
        #expect(standing(pair + [message("c", 20, .update, of: ["b"])]) == ["c"])
        #expect(standing(pair + [message("c", 20, .update, of: ["a", "b"])]) == ["c"])
        #expect(standing(pair + [message("c", 20, .cancel, of: ["b"])]).isEmpty)
        #expect(unused(pair + [message("c", 20, .update, of: ["b"])]).isEmpty, "the newest update of the circle is replaced")
    }

    @Test func `two circles that are joined leave no silence`() {
        let circles = [
            message("c", 0, .update, of: ["d"]), message("d", 0, .update, of: ["c", "a"]),
            message("a", 0, .update, of: ["b"]), message("b", 0, .update, of: ["a"]),
        ]
        #expect(standing(circles) == ["d"])
    }

    @Test func `a chain without a circle is not reported`() {
        let chain = [message("a", 0), message("b", 10, .update, of: ["a"]), message("c", 20, .update, of: ["a", "b"])]
        #expect(standing(chain) == ["c"] && unused(chain).isEmpty)
        #expect(standing(chain + [message("d", 30, .cancel, of: ["c"])]).isEmpty)
        #expect(unused(chain + [message("d", 30, .cancel, of: ["c"])]).isEmpty)
    }

    @Test func `a thousand messages that all replace each other leave the newest`() {
        let names = (0..<1000).map { "\($0)" }
        let messages = names.enumerated().map { message($0.element, Double($0.offset), .update, of: names) }
        #expect(AlertBook(messages).events(at: nil, language: nil).flatMap(\.infos).map(\.event) == ["999"])
    }

    // MARK: Conditions of updates

    @Test func `an update from another sender replaces nothing and counts by itself`() {
        let warning = message("a", 0, sender: "warn@met.example")
        let foreign = message("b", 30, .update, of: ["a"], sender: "other@example", severity: .minor)
        #expect(standing([warning, foreign]) == ["a", "b"])
        #expect(
            unused([warning, foreign]) == ["the update of a does not replace the warning: the update is from another sender (b)"])
        #expect(standing([warning, message("b", 30, .update, of: ["a"], sender: "Warn@Met.example")]) == ["b"])
        #expect(standing([warning, message("b", 30, .update, of: ["a"])]) == ["b"], "a service without senders")
        // An update from another sender refers to the first message of a chain. The update does not replace the later messages of
        // the chain.
        let chain = [warning, message("b", 10, .update, of: ["a"], sender: "warn@met.example")]
        #expect(standing(chain + [message("c", 30, .update, of: ["a"], sender: "other@example")]) == ["b", "c"])
    }

    @Test func `an update does not replace a warning that was sent after it`() {
        let pair = [message("a", 0), message("b", -60, .update, of: ["a"], severity: .minor)]
        #expect(standing(pair) == ["a", "b"])
        #expect(unused(pair) == ["the update of a does not replace the warning: the update was sent before the warning"])
        #expect(standing([message("a", 0), message("b", 0, .update, of: ["a"])]) == ["b"], "at one time")
        let circle = [message("a", 0, .update, of: ["b"]), message("b", 10, .update, of: ["a"])]
        #expect(standing(circle) == ["b"])
        #expect(unused(circle) == ["the update of b does not replace the warning: the update was sent before the warning"])
    }

    @Test func `an update replaces from its time on`() {
        let pair = [message("a", 0), message("b", 9 * 60, .update, of: ["a"], severity: .minor)]
        #expect(standing(pair, now: noon + 3600) == ["a", "b"])
        #expect(
            unused(pair, now: noon) == [
                "the update of a does not replace the warning yet: the update is dated 2026-07-01T21:00:00Z"
            ])
        #expect(standing(pair, now: noon + 9 * 3600) == ["b"] && unused(pair, now: noon + 9 * 3600).isEmpty)
        // An update also does not replace a chain to which it does not refer.
        let chain = [message("a", 0), message("b", 10, .update, of: ["a"]), message("c", 600, .update, of: ["a"])]
        #expect(standing(chain, now: noon + 3600) == ["b", "c"] && standing(chain, now: noon + 36_000) == ["c"])
    }

    // MARK: Parts of a split warning

    @Test func `an update about another hazard leaves the other part`() {
        let (first, tornado) = (
            message("q1", 0, event: "Tornado and flood"),
            message("q2", 60, .update, of: ["q1"], event: "Tornado", severity: .extreme)
        )
        func seen(_ event: String, _ hazard: AlertHazard, _ severity: CAPSeverity?) -> Set<String> {
            standing([
                first, tornado, message("q3", 66, .update, of: ["q1"], event: event, hazard: hazard, severity: severity),
            ])
        }
        #expect(seen("Flood", .flood, .minor) == ["Tornado", "Flood"])
        #expect(seen("Flood", .flood, .extreme) == ["Tornado", "Flood"])
        #expect(seen("Wind advisory", .wind, .minor) == ["Tornado", "Wind advisory"], "less severe, with another name")
        #expect(seen("Wind advisory", .wind, nil) == ["Tornado", "Wind advisory"])
        #expect(seen("Weather", .weather, .minor) == ["Tornado", "Weather"])
        // The update contains the same warning, or a warning that is at least as severe.
        #expect(seen("tornado", .wind, .minor) == ["tornado"])
        #expect(seen("Violent tornado", .wind, .extreme) == ["Violent tornado"])
        #expect(seen("Unwetter", .weather, .extreme) == ["Unwetter"])
        // If the first message is cancelled, all parts end.
        #expect(standing([first, tornado, message("c", 66, .cancel, of: ["q1"])]).isEmpty)
    }

    @Test func `an update with some of the hazards leaves a part that has more`() {
        var both = message("q2", 60, .update, of: ["q1"], event: "Tornado")
        both.infos += message("q2", 60, event: "Flood", hazard: .flood).infos
        let later = message("q3", 70, .update, of: ["q1"], event: "Tornado")
        #expect(standing([message("q1", 0), both, later]) == ["Tornado", "Flood"])
        var all = later
        all.infos += message("q3", 70, event: "Flood", hazard: .flood, severity: .minor).infos
        #expect(AlertBook([message("q1", 0), both, all]).events(at: nil, language: nil).flatMap(\.infos).count == 2)
    }

    @Test func `an update for another area leaves the part at the place`() throws {
        func area(_ latitude: Double) throws -> [AlertArea] {
            [AlertArea(name: "", circles: [.init(center: try Coordinates(latitude: latitude, longitude: 10), kilometres: 50)])]
        }
        let place = try Coordinates(latitude: 50, longitude: 10)
        let here = try message("q2", 60, .update, of: ["q1"], areas: area(50))
        func events(_ latitude: Double) throws -> [String] {
            let later = try message("q3", 70, .update, of: ["q1"], areas: area(latitude))
            let book = AlertBook([try message("q1", 0, areas: area(50)), here, later])
            return book.events(at: place, language: nil).flatMap(\.infos).map(\.event)
        }
        #expect(try events(20) == ["q2"] && events(50) == ["q3"])
    }

    // MARK: Cancellations

    @Test func `a cancellation counts from its time`() {
        let messages = [message("a", 0), message("c", 30, .cancel, of: ["a"])]
        #expect(standing(messages, now: noon + 29 * 60) == ["a"] && standing(messages, now: noon + 30 * 60).isEmpty)
        #expect(
            unused(messages, now: noon) == [
                "the cancellation of a does not count yet: the cancellation is dated 2026-07-01T12:30:00Z"
            ])
        #expect(unused(messages, now: noon + 1800).isEmpty)
    }

    @Test func `a cancellation does not end what was sent after it`() {
        let again = [message("a", 0), message("c", 30, .cancel, of: ["a"]), message("a", 40)]
        #expect(standing(again) == ["a"])
        #expect(
            unused([again[2], again[1]]) == ["the cancellation of a does not count: the cancellation was sent before the warning"]
        )
        #expect(standing([message("a", 30), message("c", 30, .cancel, of: ["a"])]).isEmpty, "at one time")
    }

    @Test func `a cancellation counts only from the sender of the warning`() {
        let warning = message("a", 0, sender: "warn@met.example")
        #expect(standing([warning, message("c", 30, .cancel, of: ["a"], sender: "other@example")]) == ["a"])
        #expect(standing([warning, message("c", 30, .cancel, of: ["a"], sender: "Warn@Met.example")]).isEmpty)
        // Some services send messages without a sender.
        #expect(standing([warning, message("c", 30, .cancel, of: ["a"])]).isEmpty)
        #expect(standing([message("a", 0), message("c", 30, .cancel, of: ["a"], sender: "x")]).isEmpty)
        #expect(
            unused([warning, message("c", 30, .cancel, of: ["a"], sender: "other@example")]) == [
                "the cancellation of a does not count: the cancellation is from another sender (c)"
            ])
        // A cancellation from another sender, for the first message of a chain, does not end later parts of the chain.
        let chain = [warning, message("b", 10, .update, of: ["a"], sender: "warn@met.example")]
        #expect(standing(chain + [message("c", 30, .cancel, of: ["a"], sender: "other@example")]) == ["b"])
        #expect(standing(chain + [message("c", 30, .cancel, of: ["a"], sender: "warn@met.example")]).isEmpty)
    }

    @Test func `the sender of a document is read`() throws {
        let text = """
            <alert><identifier>a</identifier><sender> warn@met.example </sender><sent>2026-07-01T12:00:00Z</sent>
            <status>Actual</status><msgType>Cancel</msgType><references>warn@met.example,b,x</references></alert>
            """
        let message = try #require(try CAPDocument.parse(Data(text.utf8)))
        #expect(message.sender == "warn@met.example" && message.references == ["warn@met.example,b"])
    }

    // MARK: Links

    @Test func `the content of a document replaces the earlier content`() {
        var book = AlertBook()
        book.add(message("1", 0, link: "/same"))
        book.add(message("other", 0, link: "/other"))
        book.add(message("2", 10, link: "/same"))
        func standing() -> [String] { book.events(at: nil, language: nil).flatMap(\.infos).map(\.event) }
        #expect(Set(standing()) == ["2", "other"])
        #expect(book.events(at: nil, language: nil).contains { $0.messages == ["1", "2"] }, "one event")
        // The messages are stored and read again.
        book = AlertBook(book.messages)
        #expect(Set(standing()) == ["2", "other"])
        book.add(message("3", 20, .cancel, of: ["2"], link: "/cancel"))
        #expect(standing() == ["other"])
        #expect(book.events(at: nil, language: nil).first { $0.messages.contains("1") }?.state == .cancelled)
    }

    @Test func `a document that returns to its earlier content is followed`() {
        var book = AlertBook()
        for name in ["1", "2", "1"] {
            book.add(message(name, name == "1" ? 0 : 10, link: "/same"))
            book = AlertBook(book.messages)
        }
        #expect(book.events(at: nil, language: nil).flatMap(\.infos).map(\.event) == ["1"])
        // The document now has the same identifier and an earlier time. The current content of the document is used.
        var earlier = message("1", -10, link: "/same")
        earlier.infos[0].event = "now"
        book.add(earlier)
        #expect(book.events(at: nil, language: nil).flatMap(\.infos).map(\.event) == ["now"])
    }

    @Test func `a document that becomes a test withdraws its warning until it contains the warning again`() {
        var book = AlertBook()
        let warning = message("1", 0, link: "/same")
        book.add(warning)
        book.endEmptyDocuments(["/same"], [], now: noon + 60)
        #expect(book.events(at: nil, language: nil).map(\.state) == [.cancelled])
        book.endEmptyDocuments(["/same"], [], now: noon + 120)
        book.add(warning)
        book.endEmptyDocuments([], [warning], now: noon + 180)
        #expect(book.events(at: nil, language: nil).flatMap(\.infos).map(\.event) == ["1"])
    }

    @Test func `a warning at two addresses counts while one of them contains it`() {
        let (first, second) = (message("1", 0, link: "/one"), message("1", 0, link: "/two"))
        var book = AlertBook([first])
        for message in [message("2", 10, link: "/one"), second] { book.add(message) }
        #expect(Set(book.events(at: nil, language: nil).flatMap(\.infos).map(\.event)) == ["1", "2"])
    }

    @Test func `messages of earlier versions are read`() throws {
        let stored = """
            {"identifier":"a","sent":0,"kind":"alert","references":[],"infos":[{"event":"Gale","hazard":"wind","severity":"severe",
            "from":0,"until":3600,"issuer":"X","areas":[]}]}
            """
        let message = try JSONDecoder().decode(AlertMessage.self, from: Data(stored.utf8))
        #expect(message.sender == nil && message.link == nil && message.replacedBy == nil && message.infos[0].hasOpenEnd == nil)
    }
}
