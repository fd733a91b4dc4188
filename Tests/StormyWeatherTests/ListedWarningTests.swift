import Foundation
import StormyWeather
import Testing

/// Tests documents of one feed that have the same identifier, and documents whose content changes.
@Suite struct ListedWarningTests {
    private let noon = Date(timeIntervalSince1970: 1_782_907_200)

    private func message(
        _ identifier: String, _ minute: Double, _ kind: AlertMessage.Kind = .alert, of references: [String] = [],
        at link: String?, _ event: String = "Tornado", language: String? = nil, severity: CAPSeverity = .severe
    ) -> AlertMessage {
        let info = AlertInfo(
            language: language, event: event, hazard: .wind, severity: severity, from: noon, until: noon + 6 * 3600,
            issuer: "Met", areas: [])
        var message = AlertMessage(
            identifier: identifier, sent: noon + minute * 60, kind: kind, references: references,
            infos: kind == .cancel ? [] : [info])
        message.link = link
        return message
    }

    /// Returns the valid events after several lists were received, one after the other.
    private func standing(
        _ lists: [AlertMessage]..., keepsUnlisted: Bool = true, now: Date = .distantFuture, language: String? = nil
    ) -> [String] {
        var book = AlertBook()
        for list in lists {
            book.add(list, keepsUnlisted: keepsUnlisted, now: now)
            // The messages are stored and read again.
            book = AlertBook(book.messages)
        }
        return book.events(at: nil, language: language, now: now).flatMap(\.infos).map(\.event).sorted()
    }

    @Test func `two listed documents with one identifier both count`() {
        let pair = [
            message("a", 0, at: "/1", "Tornado", severity: .extreme), message("a", 30, at: "/2", "Wind", severity: .minor),
        ]
        for list in [pair, pair.reversed()] {
            #expect(standing(list) == ["Tornado", "Wind"] && standing(list, list) == ["Tornado", "Wind"])
        }
        // A feed may contain only its newest documents.
        #expect(standing(pair, [pair[1]]) == ["Tornado", "Wind"] && standing(pair, [pair[0]]) == ["Tornado", "Wind"])
        #expect(standing(pair, [pair[1]], keepsUnlisted: false) == ["Wind"])
        let changed = message("a", 40, at: "/2", "Gust")
        #expect(standing(pair, [pair[0], changed]) == ["Gust", "Tornado"])
        #expect(standing(pair, [pair[0], message("b", 40, at: "/2", "Gust")]) == ["Gust", "Tornado"])
        #expect(standing(pair, [message("b", 40, at: "/1", "Gust"), message("c", 40, at: "/2", "Hail")]) == ["Gust", "Hail"])
    }

    @Test func `two documents of one update both count`() {
        let update = [
            message("b", 30, .update, of: ["a"], at: "/1"), message("b", 30, .update, of: ["a", "b"], at: "/2", "Wind"),
        ]
        #expect(standing([message("a", 0, at: "/0", "Hail")] + update) == ["Tornado", "Wind"])
        #expect(AlertBook(update).unusedReferences(of: update, now: .distantFuture).isEmpty)
    }

    @Test func `documents with one identifier are ended together by what names it`() {
        let pair = [message("a", 0, at: "/1"), message("a", 30, at: "/2", "Wind")]
        #expect(standing(pair + [message("c", 60, .cancel, of: ["a"], at: "/3")]).isEmpty)
        #expect(standing(pair + [message("b", 60, .update, of: ["a"], at: "/3", "Hail")]) == ["Hail"])
        // The second message was sent after the cancellation, so it is still valid.
        #expect(standing(pair + [message("c", 20, .cancel, of: ["a"], at: "/3")]) == ["Wind"])
        // A cancellation or an update may have the same identifier as its warning.
        #expect(standing([pair[0], message("a", 60, .cancel, at: "/3")]).isEmpty)
        #expect(standing([pair[0], message("a", 60, .update, of: ["a"], at: "/3", "Hail")]) == ["Hail"])
    }

    @Test func `a document that moves to another address counts once`() {
        let (old, new) = (message("a", 0, at: "/1"), message("a", 30, at: "/2", "Wind"))
        #expect(standing([old], [new]) == ["Wind"] && standing([message("a", 0, at: nil)], [new]) == ["Wind"])
        #expect(standing([new], [message("a", 0, at: "/1", "Older")]) == ["Older", "Wind"], "both warnings are kept")
    }

    @Test func `documents with one identifier in two languages are one warning`() {
        let pair = [
            message("a", 0, at: "/fr", "Tornade", language: "fr"), message("a", 0, at: "/en", "Tornado", language: "en"),
        ]
        #expect(standing(pair, language: "en") == ["Tornado"] && standing(pair, language: "fr") == ["Tornade"])
    }

    @Test func `two warnings with one identifier in the feed itself both count`() {
        let pair = [message("a", 0, at: nil, "Tornado"), message("a", 30, at: nil, "Wind")]
        for list in [pair, pair.reversed()] {
            #expect(standing(list) == ["Tornado", "Wind"] && standing(list, list) == ["Tornado", "Wind"])
        }
        #expect(standing([pair[0], pair[0]]) == ["Tornado"])
        #expect(standing([pair[0], message("a", 60, .cancel, of: ["a"], at: nil)]).isEmpty)
    }

    @Test func `a document that is a test now leaves the other one with its identifier`() {
        let pair = [message("a", 0, at: "/1"), message("a", 30, at: "/2", "Wind")]
        var book = AlertBook()
        book.add(pair)
        book.add([pair[1]])
        book.endEmptyDocuments(["/1"], [pair[1]], now: noon + 3600)
        #expect(book.events(at: nil, language: nil).flatMap(\.infos).map(\.event) == ["Wind"])
        book.endEmptyDocuments(["/1", "/2"], [], now: noon + 3600)
        #expect(book.events(at: nil, language: nil).map(\.state) == [.cancelled])
    }

    @Test func `documents with one identifier are forgotten when all are over`() {
        var long = message("a", 0, at: "/2", "Long")
        long.infos[0].until = noon + 90 * 3600
        var book = AlertBook()
        book.add([message("a", 0, at: "/1"), long])
        book.prune(before: noon + 20 * 3600)
        #expect(book.messages.count == 2)
        book.prune(before: noon + 100 * 3600)
        #expect(book.messages.isEmpty)
    }

    // MARK: Wrong clocks

    @Test func `a message from the future gives way to the same message with the right time`() {
        let (ahead, right) = (message("a", 9 * 60, at: nil, "Ahead"), message("a", 0, at: nil, "Right"))
        #expect(standing([ahead], [right], now: noon + 3600) == ["Right"])
        #expect(standing([ahead], [right], now: noon + 10 * 3600) == ["Ahead"], "an older answer")
    }

    @Test func `only an older version of the same message is not used`() {
        func isOlder(_ new: AlertMessage, _ known: AlertMessage, at hours: Double = 1) -> Bool {
            new.isOlderVersion(of: known, now: noon + hours * 3600)
        }
        let known = message("x", 30, at: "/1")
        #expect(isOlder(message("x", 0, at: "/1"), known) && !isOlder(message("x", 30, at: "/1"), known))
        #expect(!isOlder(message("x", 40, at: "/1"), known))
        #expect(!isOlder(message("y", 0, at: "/1"), known), "another message, which was sent earlier")
        #expect(!isOlder(message("x", 0, at: "/1"), message("x", 9 * 60, at: "/1")), "the stored message has a wrong time")
        #expect(
            isOlder(message("x", 0, at: "/1"), message("y", 30, .update, of: ["x"], at: "/1")),
            "the stored message replaces the listed message")
    }
}
