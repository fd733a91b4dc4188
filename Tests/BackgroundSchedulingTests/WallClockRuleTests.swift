import BackgroundScheduling
import Foundation
import Testing

/// Tests of unusual days in certain zones.
@Suite struct WallClockRuleTests {
    private func zone(_ name: String) throws -> TimeZone { try #require(TimeZone(identifier: name)) }

    private func instant(_ text: String) throws -> Date {
        try Date(text, strategy: Date.ISO8601FormatStyle(includingFractionalSeconds: false))
    }

    /// Returns the occurrences after `start`, in the local time of the zone.
    private func local(_ rule: WallClockRule, after start: String, in name: String, count: Int) throws -> [String] {
        let zone = try zone(name)
        var at = try instant(start)
        return (0..<count).map { _ in
            at = rule.next(after: at, in: zone)
            return clock(at, zone)
        }
    }

    private func clock(_ date: Date, _ zone: TimeZone) -> String {
        var calendar = Calendar(identifier: .gregorian)
        calendar.timeZone = zone
        let parts = calendar.dateComponents([.month, .day, .hour, .minute], from: date)
        func two(_ number: Int?) -> String { String(String(100 + (number ?? 0)).dropFirst()) }
        return "\(two(parts.month))-\(two(parts.day)) \(two(parts.hour)):\(two(parts.minute))"
    }

    private let noon = WallClockRule.daily(.noon)

    private func daily(_ hour: Int, _ minute: Int) throws -> WallClockRule {
        .daily(try #require(WallClockTime(hour: hour, minute: minute)))
    }

    @Test func `the next occurrence is today if the time is still to come`() throws {
        #expect(try local(noon, after: "2025-06-10T09:59:59Z", in: "Europe/Berlin", count: 1) == ["06-10 12:00"])
    }

    @Test func `the next occurrence is later than the given date`() throws {
        let berlin = try zone("Europe/Berlin")
        let first = noon.next(after: try instant("2025-06-10T00:00:00Z"), in: berlin)
        #expect(first == (try instant("2025-06-10T10:00:00Z")))
        #expect(noon.next(after: first, in: berlin) == (try instant("2025-06-11T10:00:00Z")))
        #expect(noon.next(after: first.addingTimeInterval(-0.001), in: berlin) == first)
        #expect(noon.next(after: first.addingTimeInterval(0.001), in: berlin) == (try instant("2025-06-11T10:00:00Z")))
    }

    @Test func `days of 23 and 25 hours have one noon`() throws {
        let berlin = try zone("Europe/Berlin")
        let spring = noon.next(after: try instant("2025-03-29T11:00:00Z"), in: berlin)
        #expect(spring == (try instant("2025-03-30T10:00:00Z")), "23 hours later")
        let autumn = noon.next(after: try instant("2025-10-25T10:00:00Z"), in: berlin)
        #expect(autumn == (try instant("2025-10-26T11:00:00Z")), "25 hours later")
    }

    @Test func `a time that a day has twice is served once`() throws {
        let rule = try daily(2, 30)
        #expect(
            try local(rule, after: "2025-10-25T12:00:00Z", in: "Europe/Berlin", count: 2) == ["10-26 02:30", "10-27 02:30"])
        let first = rule.next(after: try instant("2025-10-25T12:00:00Z"), in: try zone("Europe/Berlin"))
        #expect(first == (try instant("2025-10-26T00:30:00Z")), "the rule uses the first of the two hours with this time")
        #expect(
            try local(rule, after: "2026-02-14T12:00:00Z", in: "Africa/Casablanca", count: 2)
                == ["02-15 02:30", "02-16 02:30"])
    }

    @Test func `a time that a day does not have is served at the end of the gap`() throws {
        #expect(
            try local(daily(2, 30), after: "2025-03-29T12:00:00Z", in: "Europe/Berlin", count: 2)
                == ["03-30 03:00", "03-31 02:30"])
        // In this zone, the clock change skips half an hour. `Calendar.nextDate` would skip the complete day of this clock
        // change.
        #expect(
            try local(daily(2, 15), after: "2025-10-04T12:00:00Z", in: "Australia/Lord_Howe", count: 2)
                == ["10-05 02:30", "10-06 02:15"])
        // In this zone, the clock change skips two hours.
        #expect(
            try local(daily(2, 30), after: "2025-03-29T12:00:00Z", in: "Antarctica/Troll", count: 2)
                == ["03-30 03:00", "03-31 02:30"])
    }

    @Test func `a noon that Khartoum and Juba skipped is served after the gap`() throws {
        #expect(
            try local(noon, after: "2000-01-14T12:00:00Z", in: "Africa/Khartoum", count: 2) == ["01-15 13:00", "01-16 12:00"])
        #expect(
            try local(noon, after: "2000-01-14T12:00:00Z", in: "Africa/Juba", count: 2) == ["01-15 13:00", "01-16 12:00"])
    }

    @Test(arguments: [
        ("Pacific/Apia", "2011-12-29T00:00:00Z", ["12-29 12:00", "12-31 12:00", "01-01 12:00"]),
        ("Pacific/Fakaofo", "2011-12-29T12:00:00Z", ["12-29 12:00", "12-31 12:00", "01-01 12:00"]),
        ("Pacific/Kwajalein", "1993-08-20T01:00:00Z", ["08-20 12:00", "08-22 12:00", "08-23 12:00"]),
        ("Pacific/Kiritimati", "1994-12-30T12:00:00Z", ["12-30 12:00", "01-01 12:00", "01-02 12:00"]),
    ])
    func `a day that a zone skipped has no occurrence`(_ name: String, _ start: String, _ expected: [String]) throws {
        #expect(try local(noon, after: start, in: name, count: 3) == expected)
    }

    @Test func `a midnight that is skipped is served after the gap`() throws {
        #expect(
            try local(daily(0, 0), after: "2025-04-24T12:00:00Z", in: "Africa/Cairo", count: 2)
                == ["04-25 01:00", "04-26 00:00"])
        #expect(
            try local(daily(0, 30), after: "2024-10-05T12:00:00Z", in: "America/Asuncion", count: 2)
                == ["10-06 01:00", "10-07 00:30"])
    }

    /// In Nuuk, clocks change from 23:00 to midnight. The first time after the skipped hour is therefore on the next day.
    @Test func `a time in a gap that ends at midnight is served on the next day`() throws {
        #expect(
            try local(daily(23, 30), after: "2024-03-30T12:00:00Z", in: "America/Nuuk", count: 3)
                == ["03-31 00:00", "03-31 23:30", "04-01 23:30"])
    }

    @Test(arguments: ["Asia/Kathmandu", "Australia/Eucla", "Pacific/Chatham", "America/Caracas", "Asia/Pyongyang"])
    func `noon is at 12 on the clock in zones with unusual offsets`(_ name: String) throws {
        let zone = try zone(name)
        var at = try instant("2015-01-01T00:00:00Z")
        for _ in 0..<1_500 {
            let next = noon.next(after: at, in: zone)
            #expect(next > at && next.timeIntervalSince(at) <= 25 * 3600)
            #expect(clock(next, zone).hasSuffix("12:00"))
            at = next
        }
    }

    // MARK: Served

    @Test func `a clock that is set back does not serve a noon twice`() throws {
        let berlin = try zone("Europe/Berlin")
        let served = try instant("2025-06-10T10:00:00Z")
        for back in ["2025-06-10T09:59:00Z", "2025-06-10T00:00:00Z"] {
            #expect(noon.next(after: try instant(back), served: served, in: berlin) == (try instant("2025-06-11T10:00:00Z")))
        }
    }

    /// The clock was ahead by a day or more, at most by a year. After the correction, a launch that ran because of the wrong time
    /// does not count.
    @Test(arguments: ["2025-06-09T12:00:00Z", "2025-06-01T00:00:00Z", "2024-06-10T09:59:59Z"])
    func `a noon that was served by a clock far ahead does not count`(_ now: String) throws {
        let berlin = try zone("Europe/Berlin")
        let next = noon.next(after: try instant(now), served: try instant("2025-06-10T10:00:00Z"), in: berlin)
        #expect(next.timeIntervalSince(try instant(now)) <= 86_400)
    }

    @Test func `a clock that is set ahead does not serve past noons`() throws {
        let berlin = try zone("Europe/Berlin")
        let next = noon.next(
            after: try instant("2025-06-15T11:00:00Z"), served: try instant("2025-06-10T10:00:00Z"), in: berlin)
        #expect(next == (try instant("2025-06-16T10:00:00Z")))
        #expect(
            noon.next(after: try instant("2025-06-15T09:00:00Z"), served: nil, in: berlin)
                == (try instant("2025-06-15T10:00:00Z")))
    }

    /// A user travels west after noon. The local clock shows 12:00 again, after the launch for the first noon. A launch also runs
    /// at the second noon, because the user's clock shows 12:00.
    @Test func `another zone may have another noon on the same day`() throws {
        let served = try instant("2025-06-10T10:00:00Z")
        let next = noon.next(after: try instant("2025-06-10T15:00:00Z"), served: served, in: try zone("America/New_York"))
        #expect(next == (try instant("2025-06-10T16:00:00Z")))
    }
}

@Suite struct WallClockTimeTests {
    @Test(arguments: ["12:00", "0:05", "23:59", "00:00:01", "7:30"])
    func `a valid time is parsed`(_ text: String) throws { #expect(WallClockTime(parsing: text) != nil) }

    @Test(arguments: [
        "", "12", "24:00", "12:60", "12:00:60", "+1:00", "-1:00", "1:2:3:4", "12:", ":30", " 12:00", "٣:00", "012:00",
    ])
    func `an invalid time is not parsed`(_ text: String) { #expect(WallClockTime(parsing: text) == nil) }

    @Test func `the description of a time is the text that was parsed`() throws {
        for text in ["12:00", "00:05", "23:59:58"] {
            #expect(try #require(WallClockTime(parsing: text)).description == text)
        }
        #expect(WallClockTime.noon.description == "12:00")
        #expect(WallClockTime.noon.secondsIntoDay == 43_200)
    }

    @Test func `a rule can be encoded and decoded`() throws {
        let rule = WallClockRule.daily(try #require(WallClockTime(hour: 6, minute: 7, second: 8)))
        #expect(try JSONDecoder().decode(WallClockRule.self, from: JSONEncoder().encode(rule)) == rule)
    }
}
