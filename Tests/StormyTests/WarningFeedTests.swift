import Foundation
import GRDB
import StormyWeather
import Testing
import TransferMachines

@testable import Stormy

/// Tests the stored feeds and warning documents, and the times of their next requests.
@Suite final class WarningFeedTests {
    private let folder: URL
    private let store: StormyStore
    private let noon = Date(timeIntervalSince1970: 1_800_000_000.123)

    init() throws {
        folder = FileManager.default.temporaryDirectory.appendingPathComponent("stormy-" + UUID().uuidString)
        store = try StormyStore(folder: folder)
    }

    deinit { try? FileManager.default.removeItem(at: folder) }

    private static let here = try? Coordinates(latitude: 45.8992, longitude: 6.1294)
    private static let tag = Validator.entityTag("\"1\"")

    private func part(_ links: [String], at place: Coordinates? = WarningFeedTests.here) -> WarningFeed.Part {
        WarningFeed.Part(place: place, entries: links.map { .link($0, updated: nil) }, leftOut: 0)
    }

    private func feed(
        _ parts: [WarningFeed.Part], tag: Validator? = WarningFeedTests.tag, at hours: Double = 0, dataTime: Date? = nil
    ) -> WarningFeed {
        let time = noon + hours * 3600
        return WarningFeed(
            service: "meteoalarm", address: "https://a.example/feed", validator: tag, parts: parts, dataTime: dataTime,
            receivedAt: time, changedAt: time)
    }

    // MARK: Feeds

    @Test func `a stored feed is read as it was`() throws {
        let info = AlertInfo(
            event: "Storm", hazard: .wind, severity: .severe, from: noon, until: noon + 3600, issuer: "X", areas: [])
        let message = AlertMessage(identifier: "a", sent: Date(timeIntervalSince1970: 1_800_000_000), infos: [info])
        let links = WarningFeed.Part(
            place: Self.here,
            entries: [.link("https://a.example/1", updated: "soon"), .link("https://a.example/2", updated: nil)],
            leftOut: 3)
        let written = feed(
            [links, WarningFeed.Part(place: nil, entries: [.message(message)], leftOut: 0)],
            dataTime: noon - 1)
        try store.store(written)
        let read = try #require(try store.warningFeed("meteoalarm", "https://a.example/feed"))
        #expect(read.parts.first == links && read.part(of: Self.here) == links && read.parts.count == 2)
        guard case .message(let stored)? = read.part(of: nil)?.entries.first else {
            Issue.record("no message")
            return
        }
        #expect(stored.identifier == "a" && stored.sent == message.sent && stored.infos.first?.event == "Storm")
        #expect(read.dataTime == written.dataTime && read.changedAt == noon && read.validator == Self.tag)
        #expect(try store.warningFeed("other", "https://a.example/feed") == nil)
        try store.store(feed([part([])], tag: nil))
        #expect(try store.warningFeed("meteoalarm", "https://a.example/feed")?.parts == [part([])])
    }

    @Test func `a condition needs a part for each place and a time that the clock can explain`() throws {
        let there = try Coordinates(latitude: 46.2056, longitude: 5.2258)
        let stored = feed([part(["1"])])
        func condition(_ places: [Coordinates?] = [WarningFeedTests.here], after hours: Double = 1) -> Validator? {
            stored.condition(for: places, now: noon + hours * 3600)
        }
        #expect(condition() == Self.tag && condition(after: 71) == Self.tag && condition(after: 0) == Self.tag)
        #expect(condition([Self.here, there]) == nil && condition([nil]) == nil)
        #expect(condition(after: 73) == nil, "the complete feed every three days")
        #expect(condition(after: -1) == nil, "the clock was ahead")
        #expect(feed([part([])], tag: nil).condition(for: [Self.here], now: noon) == nil)
    }

    @Test func `another list under the same validator is not trusted for a month`() throws {
        let there = try Coordinates(latitude: 46.2056, longitude: 5.2258)
        let old = feed([part(["1"])])
        var added = feed([part(["1"]), part(["2"], at: there)], at: 1)
        added.follow(old)
        #expect(added.distrustedAt == nil && added.changedAt == noon, "an added place changes nothing")
        var other = feed([part(["2"])], at: 2)
        other.follow(old)
        #expect(other.distrustedAt == noon + 7200 && other.changedAt == noon + 7200)
        #expect(other.condition(for: [Self.here], now: noon + 10_000) == nil)
        var later = feed([part(["2"])], at: 31 * 24)
        later.follow(other)
        #expect(later.condition(for: [Self.here], now: noon + 31 * 86_400 + 10_000) == Self.tag)
        var honest = feed([part(["2"])], tag: .entityTag("\"2\""), at: 2)
        honest.follow(old)
        #expect(honest.distrustedAt == nil && honest.changedAt == noon + 7200)
    }

    @Test func `a list that is too long to store leads to complete requests and counts as changed`() throws {
        let long = feed([part((0..<20_000).map { "https://a.example/a-document-with-a-long-name/\($0)" })])
        try store.store(long)
        let stored = try #require(try store.warningFeed(long.service, long.address))
        #expect(stored.parts.isEmpty && stored.condition(for: [Self.here], now: noon) == nil)
        var next = feed(long.parts, at: 1)
        next.follow(stored)
        #expect(next.changedAt == noon + 3600 && next.distrustedAt == nil)
    }

    @Test func `a feed that cannot be read or is not requested any more is requested in full`() throws {
        try store.store(feed([part(["1"])]))
        try store.queue.write { try $0.execute(sql: "UPDATE warningFeed SET parts = '[{}]'") }
        #expect(try store.warningFeed("meteoalarm", "https://a.example/feed") == nil)
        try store.store(feed([part(["1"])]))
        try store.prune(now: noon + 29 * 86_400)
        #expect(try store.warningFeed("meteoalarm", "https://a.example/feed") != nil)
        try store.prune(now: noon + 31 * 86_400)
        #expect(try store.warningFeed("meteoalarm", "https://a.example/feed") == nil)
    }

    // MARK: Documents

    private func keep(_ link: String, updated: String? = nil, checkedAt: Date) throws {
        try store.saveDocument(
            WarningDocument(link: link, message: nil, seenAt: noon, updated: updated, validator: Self.tag, checkedAt: checkedAt))
    }

    /// Returns the URLs of stored documents that must be requested again.
    private func due(_ links: [FeedLink], changedAt: Date? = nil, now: Date? = nil) throws -> [String] {
        try store.knownDocuments(links, changedAt: changedAt ?? .distantPast, now: now ?? noon).due.map(\.address)
    }

    @Test func `a document is due after a day and under a clock that was ahead`() throws {
        try keep("new", updated: "x", checkedAt: noon - 3600)
        try keep("old", updated: "x", checkedAt: noon - 25 * 3600)
        try keep("oldest", updated: "x", checkedAt: noon - 26 * 3600)
        try keep("ahead", updated: "x", checkedAt: noon + 3600)
        let links = ["new", "old", "ahead", "oldest", "new", "unknown"].map { FeedLink(address: $0, updated: "x") }
        #expect(try due(links) == ["oldest", "old", "ahead"], "the oldest request comes first")
        let known = try store.knownDocuments(links, changedAt: noon, now: noon)
        #expect(known.addresses == ["new", "old", "ahead", "oldest"])
        #expect(try store.document("old")?.validator == Self.tag)
    }

    /// Two daily checks can be less than 24 hours apart. The time is shorter if daylight saving time begins, or if the second
    /// check starts some seconds earlier.
    @Test func `each daily check requests a document again`() throws {
        for age in [23 * 3600.0, 86_390, 86_400] {
            try keep("\(age)", updated: "x", checkedAt: noon - age)
            #expect(try due([FeedLink(address: "\(age)", updated: "x")]) == ["\(age)"])
        }
        try keep("new", updated: "x", checkedAt: noon - 19 * 3600)
        #expect(try due([FeedLink(address: "new", updated: "x")]) == [])
    }

    @Test func `a document without a time is due when its feed has changed since`() throws {
        try keep("timeless", checkedAt: noon)
        try keep("timed", updated: "x", checkedAt: noon)
        let links = [FeedLink(address: "timeless", updated: nil), FeedLink(address: "timed", updated: "x")]
        #expect(try due(links, changedAt: noon - 1) == [] && due(links, changedAt: noon) == [])
        #expect(try due(links, changedAt: noon + 1, now: noon + 1) == ["timeless"])
        #expect(try due(links, changedAt: noon + 60, now: noon + 1) == [], "a change in the future is a wrong clock")
        // The next check reads the time of the feed from the store.
        try store.store(feed([part(["timeless"])]))
        let changedAt = try store.warningFeed("meteoalarm", "https://a.example/feed")?.changedAt
        #expect(try due(links, changedAt: changedAt) == [])
    }

    // MARK: Codes

    @Test func `an unknown code is reported once and the list of codes is limited`() throws {
        func code(_ number: Int) -> RegionCode { RegionCode(type: "EMMA_ID", value: "XX\(1000 + number)") }
        try store.storeUnknownCodes([code(2), code(1)])
        #expect(try store.claimUnreportedCodes() == ["EMMA_ID XX1001", "EMMA_ID XX1002"])
        try store.storeUnknownCodes([code(1), code(3)])
        #expect(try store.claimUnreportedCodes() == ["EMMA_ID XX1003"] && store.claimUnreportedCodes() == [])
        try store.storeUnknownCodes(Set((0..<3000).map(code)))
        #expect(try store.claimUnreportedCodes().count == 50, "the others follow")
        let count = try store.queue.read { try Int.fetchOne($0, sql: "SELECT COUNT(*) FROM unknownRegion") }
        #expect(count == 1000)
    }

    // MARK: Migration

    @Test func `documents of an earlier version are due at once`() throws {
        let database = try DatabaseQueue()
        let migrator = StormyStore.migrator
        try migrator.migrate(database, upTo: "11: unknown regions are reported once")
        try database.write { database in
            try database.execute(sql: "INSERT INTO warningDocument (link, seenAt, updated) VALUES ('a', 1, 'x')")
        }
        try migrator.migrate(database)
        let document = try database.read { try WarningDocument.fetchOne($0, key: "a") }
        #expect(document?.validator == nil && document?.checkedAt == Date(timeIntervalSince1970: 0))
    }
}
