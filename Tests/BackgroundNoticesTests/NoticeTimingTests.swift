import BackgroundNotices
import Foundation
import Testing

private func zone(_ name: String) throws -> TimeZone { try #require(TimeZone(identifier: name)) }

private func instant(_ text: String) throws -> Date {
    try Date(text, strategy: Date.ISO8601FormatStyle(includingFractionalSeconds: false))
}

@Suite struct QuietHoursTests {
    @Test(arguments: [
        "", "22:00", "22:00-", "-07:00", "22:00-22:00", "24:00-07:00", "22:60-07:00", "22:00-07:00-08:00", "22-7", "a:b-c:d",
        "22:00:00-07:00", "-1:00-07:00", "+22:00-+7:00",
    ])
    func `invalid quiet hours are refused`(_ text: String) { #expect(QuietHours(parsing: text) == nil) }

    @Test func `valid quiet hours are parsed`() throws {
        let hours = try #require(QuietHours(parsing: "22:00-07:30"))
        #expect(hours.start == 79_200)
        #expect(hours.end == 27_000)
    }

    @Test func `quiet hours may span midnight`() throws {
        let hours = try #require(QuietHours(parsing: "22:00-07:00"))
        let utc = try zone("UTC")
        let morning = try instant("2025-06-11T07:00:00Z")
        for inside in ["2025-06-10T22:00:00Z", "2025-06-10T23:59:59Z", "2025-06-11T00:00:00Z", "2025-06-11T06:59:59Z"] {
            #expect(hours.end(covering: try instant(inside), in: utc) == morning, "\(inside)")
        }
        for outside in ["2025-06-10T21:59:59Z", "2025-06-11T07:00:00Z", "2025-06-11T12:00:00Z"] {
            #expect(hours.end(covering: try instant(outside), in: utc) == nil, "\(outside)")
        }
    }

    @Test func `quiet hours may start and end on one day`() throws {
        let hours = try #require(QuietHours(parsing: "13:00-15:00"))
        let utc = try zone("UTC")
        #expect(hours.end(covering: try instant("2025-06-10T14:00:00Z"), in: utc) == (try instant("2025-06-10T15:00:00Z")))
        #expect(hours.end(covering: try instant("2025-06-10T15:00:00Z"), in: utc) == nil)
        #expect(hours.end(covering: try instant("2025-06-10T12:59:59Z"), in: utc) == nil)
    }

    @Test func `quiet hours follow the local time of the user`() throws {
        let hours = try #require(QuietHours(parsing: "22:00-07:00"))
        let kathmandu = try zone("Asia/Kathmandu")  // 5:45 ahead
        #expect(
            hours.end(covering: try instant("2025-06-10T16:15:00Z"), in: kathmandu) == (try instant("2025-06-11T01:15:00Z")))
        #expect(hours.end(covering: try instant("2025-06-10T16:14:59Z"), in: kathmandu) == nil)
        // The calculation must also be correct before 1970.
        #expect(
            hours.end(covering: try instant("1969-12-31T23:00:00Z"), in: try zone("UTC"))
                == (try instant("1970-01-01T07:00:00Z")))
    }

    @Test func `quiet hours end on time in nights with a clock change`() throws {
        let hours = try #require(QuietHours(parsing: "22:00-07:00"))
        let berlin = try zone("Europe/Berlin")
        #expect(
            hours.end(covering: try instant("2025-03-29T22:00:00Z"), in: berlin) == (try instant("2025-03-30T05:00:00Z")),
            "7:00 in summer time")
        #expect(
            hours.end(covering: try instant("2025-10-25T21:00:00Z"), in: berlin) == (try instant("2025-10-26T06:00:00Z")),
            "7:00 in winter time")
    }

    /// In every time zone, the computed end of the quiet hours is at most 11 hours in the future. The end is not inside the quiet
    /// hours.
    @Test(arguments: ["Europe/Berlin", "Australia/Lord_Howe", "Antarctica/Troll", "Africa/Casablanca", "America/Nuuk"])
    func `the end of quiet hours is later and outside the quiet hours`(_ name: String) throws {
        let zone = try zone(name)
        let hours = try #require(QuietHours(parsing: "22:00-07:00"))
        var at = try instant("2025-01-01T00:00:00Z")
        while at < (try instant("2026-01-01T00:00:00Z")) {
            if let end = hours.end(covering: at, in: zone) {
                #expect(end > at && end.timeIntervalSince(at) <= 11 * 3600)
                #expect(hours.end(covering: end, in: zone) == nil, "\(at)")
            }
            at += 1_800
        }
    }
}

@Suite struct NoticeTimingTests {
    private let now = Date(timeIntervalSince1970: 1_750_000_000)  // 2025-06-15 15:06:40 UTC
    private let utc = TimeZone(secondsFromGMT: 0) ?? .current

    private func verdict(
        due: Double? = nil, level: Int = 1, category: String = "", isEnabled: Bool = true, quiet: String = "", loud: Int? = 3
    ) -> NoticeTiming.Verdict {
        var rules = NoticeRules()
        (rules.isEnabled, rules.quietHours, rules.loudLevel) = (isEnabled, QuietHours(parsing: quiet), loud)
        rules.silencedCategories = ["photos"]
        return NoticeTiming.verdict(
            dueAt: due.map(now.addingTimeInterval), level: level, category: category, rules, now: now, zone: utc)
    }

    @Test func `notifications of the loud level pass quiet hours`() {
        #expect(verdict(level: 3, quiet: "15:00-16:00") == .show)
        #expect(verdict(level: 2, quiet: "15:00-16:00") != .show)
        #expect(verdict(level: 2, quiet: "15:00-16:00", loud: 2) == .show)
        #expect(verdict(level: 3, quiet: "15:00-16:00", loud: nil) != .show)
        #expect(verdict(due: 10, level: 3, quiet: "15:00-16:00") == .wait(until: now + 10))
    }

    @Test func `a category can be disabled separately`() {
        #expect(verdict(level: 3, category: "photos") == .silenced)
        #expect(verdict(category: "storms") == .show)
    }

    @Test func `a notification without a future time is shown at once`() {
        #expect(verdict() == .show)
        #expect(verdict(due: 0) == .show)
        #expect(verdict(due: -1) == .show)
    }

    @Test func `a notification waits for its time`() { #expect(verdict(due: 10) == .wait(until: now.addingTimeInterval(10))) }

    @Test func `a notification waits for the end of quiet hours`() {
        let end = now.addingTimeInterval(3_200)  // 16:00
        #expect(verdict(quiet: "15:00-16:00") == .wait(until: end))
        #expect(verdict(due: -5, quiet: "15:00-16:00") == .wait(until: end))
        #expect(verdict(due: 10, quiet: "15:00-16:00") == .wait(until: now.addingTimeInterval(10)), "asked again then")
        #expect(verdict(quiet: "16:00-17:00") == .show)
    }

    @Test func `disabled notifications are silenced`() {
        #expect(verdict(isEnabled: false) == .silenced)
        #expect(verdict(due: 10, isEnabled: false, quiet: "15:00-16:00") == .wait(until: now.addingTimeInterval(10)))
    }
}
