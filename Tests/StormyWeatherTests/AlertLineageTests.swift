import Foundation
import StormyWeather
import Testing

/// The messages that count among messages that refer to each other.
@Suite struct AlertLineageTests {
    private let noon = Date(timeIntervalSince1970: 1_782_907_200)

    private func message(
        _ identifier: String, _ minute: Double, _ kind: AlertMessage.Kind = .alert, of references: [String] = [],
        sender: String? = nil, link: String? = nil, from: Double = 2
    ) -> AlertMessage {
        let info = AlertInfo(
            event: identifier, hazard: .wind, severity: .severe, from: noon + from * 3600, until: noon + (from + 3) * 3600,
            issuer: "Met", areas: [])
        var message = AlertMessage(
            identifier: identifier, sent: noon + minute * 60, kind: kind, references: references,
            infos: kind == .cancel ? [] : [info])
        (message.sender, message.link) = (sender, link)
        return message
    }

    /// The events that stand, by the identifiers of their messages, whatever the order in which they arrive.
    private func standing(_ messages: [AlertMessage], now: Date = .distantFuture) -> Set<String> {
        func seen(_ messages: [AlertMessage]) -> Set<String> {
            var book = AlertBook()
            for message in messages { book.note(message) }
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
        #expect(standing([message("a", 0), itself]) == ["a"], "it keeps its identifier")
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

    @Test func `a circle leaves its newest`() {
        let pair = [message("a", 0, .update, of: ["b"]), message("b", 10, .update, of: ["a"])]
        #expect(standing(pair) == ["b"])
        #expect(unused(pair) == ["2 updates replace each other, and the newest of them counts (b)"])
        let back = [message("a", 20, .update, of: ["b"]), message("b", 10, .update, of: ["a"])]
        #expect(standing(back) == ["a"])
        for step in [1, 2] {
            // Each refers to the next but one, or to the one before it.
            let circle = (0..<5).map { message("\($0)", Double($0), .update, of: ["\((($0 + step * 2) + 5) % 5)"]) }
            #expect(standing(circle) == ["4"])
            #expect(unused(circle).count == 1)
        }
        #expect(standing([message("a", 0, .update, of: ["b"]), message("b", 0, .update, of: ["a"])]).count == 1, "at one time")
    }

    @Test func `a circle is replaced and cancelled as one warning`() {
        let pair = [message("a", 0, .update, of: ["b"]), message("b", 10, .update, of: ["a"])]
        #expect(standing([message("z", -10)] + [message("a", 0, .update, of: ["b", "z"]), pair[1]]) == ["b"])
        #expect(standing(pair + [message("c", 20, .update, of: ["b"])]) == ["c"])
        #expect(standing(pair + [message("c", 20, .update, of: ["a", "b"])]) == ["c"])
        #expect(standing(pair + [message("c", 20, .cancel, of: ["b"])]).isEmpty)
        #expect(unused(pair + [message("c", 20, .update, of: ["b"])]).isEmpty, "the newest of the circle is replaced")
    }

    @Test func `two circles that are joined leave no silence`() {
        let circles = [
            message("a", 0, .update, of: ["b"]), message("b", 10, .update, of: ["a", "c"]),
            message("c", 5, .update, of: ["d"]), message("d", 6, .update, of: ["c"]),
        ]
        #expect(standing(circles) == ["b"])
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

    // MARK: Cancellations

    @Test func `a cancellation counts from its time`() {
        let messages = [message("a", 0), message("c", 30, .cancel, of: ["a"])]
        #expect(standing(messages, now: noon + 29 * 60) == ["a"] && standing(messages, now: noon + 30 * 60).isEmpty)
        #expect(unused(messages, now: noon) == ["the cancellation of a does not count yet: it is dated 2026-07-01T12:30:00Z"])
        #expect(unused(messages, now: noon + 1800).isEmpty)
    }

    @Test func `a cancellation does not end what was sent after it`() {
        let again = [message("a", 0), message("c", 30, .cancel, of: ["a"]), message("a", 40)]
        #expect(standing(again) == ["a"])
        #expect(unused([again[2], again[1]]) == ["the cancellation of a does not count: it was sent before the warning"])
        #expect(standing([message("a", 30), message("c", 30, .cancel, of: ["a"])]).isEmpty, "at one time")
    }

    @Test func `a cancellation counts only from the sender of the warning`() {
        let warning = message("a", 0, sender: "warn@met.example")
        #expect(standing([warning, message("c", 30, .cancel, of: ["a"], sender: "other@example")]) == ["a"])
        #expect(standing([warning, message("c", 30, .cancel, of: ["a"], sender: "Warn@Met.example")]).isEmpty)
        // Services whose messages have no sender.
        #expect(standing([warning, message("c", 30, .cancel, of: ["a"])]).isEmpty)
        #expect(standing([message("a", 0), message("c", 30, .cancel, of: ["a"], sender: "x")]).isEmpty)
        #expect(
            unused([warning, message("c", 30, .cancel, of: ["a"], sender: "other@example")]) == [
                "the cancellation of a does not count: it is from another sender (c)"
            ])
        // A later part of the chain is not ended by a foreign cancellation of its first message.
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
        book.note(message("1", 0, link: "/same"))
        book.note(message("other", 0, link: "/other"))
        book.note(message("2", 10, link: "/same"))
        func standing() -> [String] { book.events(at: nil, language: nil).flatMap(\.infos).map(\.event) }
        #expect(Set(standing()) == ["2", "other"])
        #expect(book.events(at: nil, language: nil).contains { $0.messages == ["1", "2"] }, "one event")
        // Stored and read again.
        book = AlertBook(book.messages)
        #expect(Set(standing()) == ["2", "other"])
        book.note(message("3", 20, .cancel, of: ["2"], link: "/cancel"))
        #expect(standing() == ["other"])
        #expect(book.events(at: nil, language: nil).first { $0.messages.contains("1") }?.state == .cancelled)
    }

    @Test func `a document that returns to its earlier content is followed`() {
        var book = AlertBook()
        for name in ["1", "2", "1"] {
            book.note(message(name, name == "1" ? 0 : 10, link: "/same"))
            book = AlertBook(book.messages)
        }
        #expect(book.events(at: nil, language: nil).flatMap(\.infos).map(\.event) == ["1"])
        // The same identifier with an earlier time: what is there now counts.
        var earlier = message("1", -10, link: "/same")
        earlier.infos[0].event = "now"
        book.note(earlier)
        #expect(book.events(at: nil, language: nil).flatMap(\.infos).map(\.event) == ["now"])
    }

    @Test func `a document that is a test now takes its warning back until it contains it again`() {
        var book = AlertBook()
        let warning = message("1", 0, link: "/same")
        book.note(warning)
        book.noteEmpty(["/same"], [], now: noon + 60)
        #expect(book.events(at: nil, language: nil).map(\.state) == [.cancelled])
        book.noteEmpty(["/same"], [], now: noon + 120)
        book.note(warning)
        book.noteEmpty([], [warning], now: noon + 180)
        #expect(book.events(at: nil, language: nil).flatMap(\.infos).map(\.event) == ["1"])
    }

    @Test func `a warning at two addresses counts while one of them contains it`() {
        let (first, second) = (message("1", 0, link: "/one"), message("1", 0, link: "/two"))
        var book = AlertBook([first])
        for message in [message("2", 10, link: "/one"), second] { book.note(message) }
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
