import BackgroundNotices
import Foundation
import Testing

/// Tests of the times of notifications with triggers, also for days on which daylight saving time begins or ends, and for wrong
/// clocks.
@Suite struct NoticeScheduleTests {
    private let berlin = TimeZone(identifier: "Europe/Berlin")!
    private let lordHowe = TimeZone(identifier: "Australia/Lord_Howe")!

    private func instant(_ text: String) -> Date { (try? Date(text, strategy: .iso8601)) ?? .distantPast }

    private func calendar(_ repeats: Bool = true, _ change: (inout DateComponents) -> Void) -> NoticeTrigger {
        var components = DateComponents()
        change(&components)
        return .calendar(components, repeats: repeats)
    }

    /// Returns the next instants of a trigger after `from` in a time zone.
    private func instants(_ trigger: NoticeTrigger, from: String, _ zone: TimeZone, _ count: Int) -> [Date] {
        var found: [Date] = []
        var last = instant(from)
        for _ in 0..<count {
            guard let next = trigger.next(after: last, zone: zone) else { break }
            found.append(next)
            last = next
        }
        return found
    }

    @Test func `a daily trigger fires once on days with a clock change`() {
        let night = calendar { ($0.hour, $0.minute) = (2, 30) }
        // In Berlin, 02:30 does not exist on 29 March 2026, and occurs twice on 25 October.
        #expect(
            instants(night, from: "2026-03-27T12:00:00Z", berlin, 3)
                == ["2026-03-28T01:30:00Z", "2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"].map(instant))
        #expect(
            instants(night, from: "2026-10-24T12:00:00Z", berlin, 2)
                == ["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"].map(instant))
        // On Lord Howe Island, the clock changes by half an hour for summer time, so half an hour is skipped.
        let half = calendar { ($0.hour, $0.minute) = (2, 15) }
        #expect(instants(half, from: "2026-10-03T00:00:00Z", lordHowe, 1) == ["2026-10-03T15:30:00Z"].map(instant))
    }

    @Test func `only the given date components are compared`() {
        let leap = calendar { ($0.month, $0.day, $0.hour) = (2, 29, 12) }
        #expect(
            instants(leap, from: "2026-01-01T00:00:00Z", .gmt, 2)
                == ["2028-02-29T12:00:00Z", "2032-02-29T12:00:00Z"].map(instant))
        let last = calendar { ($0.day, $0.hour) = (31, 0) }
        #expect(
            instants(last, from: "2026-01-31T00:00:00Z", .gmt, 2)
                == ["2026-03-31T00:00:00Z", "2026-05-31T00:00:00Z"].map(instant))
        let mondays = calendar { ($0.weekday, $0.hour) = (2, 9) }
        #expect(
            instants(mondays, from: "2026-11-26T00:00:00Z", berlin, 2)
                == ["2026-11-30T08:00:00Z", "2026-12-07T08:00:00Z"].map(instant))
        let everyHour = calendar { $0.minute = 5 }
        #expect(instants(everyHour, from: "2026-11-26T00:05:00Z", .gmt, 1) == [instant("2026-11-26T01:05:00Z")])
        let named = calendar { ($0.hour, $0.timeZone) = (12, TimeZone(identifier: "Asia/Tokyo")) }
        #expect(instants(named, from: "2026-11-26T00:00:00Z", berlin, 1) == [instant("2026-11-26T03:00:00Z")])
        let once = calendar { ($0.year, $0.month, $0.day, $0.hour) = (2026, 11, 27, 8) }
        #expect(instants(once, from: "2026-11-26T00:00:00Z", .gmt, 2) == [instant("2026-11-27T08:00:00Z")])
    }

    @Test func `a trigger that never fires has no schedule`() {
        for change: (inout DateComponents) -> Void in [
            { _ in }, { ($0.month, $0.day) = (2, 30) }, { $0.hour = 25 }, { $0.minute = -1 }, { $0.year = 2020 },
            { ($0.year, $0.month, $0.day) = (2027, 2, 29) }, { $0.month = 0 }, { $0.day = 99 }, { $0.weekday = 8 },
            { $0.timeZone = .gmt },
        ] {
            let trigger = calendar(true, change)
            #expect(NoticeSchedule(trigger, now: instant("2026-11-26T00:00:00Z"), zone: berlin) == nil, "\(trigger)")
        }
    }

    /// The user travels, or the clock was a year ahead and is corrected.
    @Test func `a schedule is computed again after a clock change`() throws {
        let noon = calendar { $0.hour = 12 }
        let added = instant("2026-11-26T06:00:00Z")
        let schedule = try #require(NoticeSchedule(noon, now: added, zone: berlin))
        #expect(schedule.next == instant("2026-11-26T11:00:00Z"))
        #expect(schedule.read(now: added + 60, zone: berlin) == schedule)
        let tokyo = TimeZone(identifier: "Asia/Tokyo")!
        #expect(schedule.read(now: added + 60, zone: tokyo).next == instant("2026-11-27T03:00:00Z"))
        // A date that was due before the journey stays due.
        let later = instant("2026-11-26T11:30:00Z")
        #expect(
            schedule.read(now: later, zone: TimeZone(identifier: "America/New_York")!).next == instant("2026-11-26T17:00:00Z"))
        for trigger in [noon, .interval(3_600, repeats: false), .interval(3_600, repeats: true)] {
            let ahead = try #require(NoticeSchedule(trigger, now: added + 365 * 86_400, zone: berlin))
            let right = ahead.read(now: added, zone: berlin)
            #expect(right.next == trigger.next(after: added, zone: berlin), "\(trigger)")
            let behind = try #require(NoticeSchedule(trigger, now: added - 365 * 86_400, zone: berlin))
            #expect(try #require(behind.read(now: added, zone: berlin).next) < added, "the notification is due, but late")
        }
    }

    @Test func `missed occurrences are consumed at once`() throws {
        let added = instant("2026-11-26T06:00:00Z")
        var noon = try #require(NoticeSchedule(calendar { $0.hour = 12 }, now: added, zone: berlin))
        noon.consume(now: instant("2026-12-24T20:00:00Z"), zone: berlin)
        #expect(noon.next == instant("2026-12-25T11:00:00Z"))
        var hourly = try #require(NoticeSchedule(.interval(3_600, repeats: true), now: added, zone: berlin))
        hourly.consume(now: added + 3_600.5, zone: berlin)
        #expect(hourly.next == added + 7_200, "the repetition keeps its interval")
        hourly.consume(now: added + 10 * 3_600 + 7, zone: berlin)
        #expect(hourly.next == added + 11 * 3_600)
        var once = try #require(NoticeSchedule(.interval(60, repeats: false), now: added, zone: berlin))
        once.consume(now: added + 60, zone: berlin)
        #expect(once.next == nil)
        #expect(once.read(now: added - 86_400, zone: .gmt).next == nil)
    }

    /// The notification for noon was shown, and then the clock is set back to a time before noon.
    @Test func `a clock that is set back does not repeat an occurrence`() throws {
        let noon = instant("2026-11-26T11:00:00Z")
        var schedule = try #require(NoticeSchedule(calendar { $0.hour = 12 }, now: noon - 3_600, zone: berlin))
        schedule.consume(now: noon + 0.2, zone: berlin)
        #expect(schedule.read(now: noon - 1_800, zone: berlin).next == noon + 86_400)
        // If the clock is set back by a year, the clock was wrong before.
        #expect(try #require(schedule.read(now: noon - 365 * 86_400 - 60, zone: berlin).next) < noon - 364 * 86_400)
        // An interval is elapsed time, not local time.
        var hourly = try #require(NoticeSchedule(.interval(3_600, repeats: true), now: noon, zone: berlin))
        hourly.consume(now: noon + 3_600, zone: berlin)
        #expect(hourly.read(now: noon, zone: berlin).next == noon + 3_600)
        for seconds in [0, -1, .nan, .infinity, 1e-9] {
            let next = NoticeTrigger.interval(seconds, repeats: true).next(after: noon, zone: berlin)
            #expect(next == nil || next! >= noon + 60, "the interval must not cause endless repetitions: \(seconds)")
        }
    }

    /// The test compares the result with a simple search that tries every minute.
    @Test(arguments: 0..<60) func `the next date is the first minute that matches the components`(_ seed: Int) {
        let zones = ["Europe/Berlin", "America/New_York", "Asia/Kathmandu", "Pacific/Apia", "UTC"]
        let zone = TimeZone(identifier: zones[seed % zones.count])!
        var wall = Calendar(identifier: .gregorian)
        wall.timeZone = zone
        let start = instant("2026-03-05T00:00:00Z") + Double(seed * 7_919 % 86_400 / 60 * 60)
        let minute = seed * 7 % 60
        // In the time zones of this test, these hours are never skipped.
        let hour = 4 + seed % 20
        let weekday = 1 + seed % 7
        let trigger = calendar { ($0.weekday, $0.hour, $0.minute) = (weekday, hour, minute) }
        let found = (1...(8 * 1_440)).lazy.map { start + Double($0) * 60 }.first { date in
            let parts = wall.dateComponents([.weekday, .hour, .minute], from: date)
            return (parts.weekday, parts.hour, parts.minute) == (weekday, hour, minute)
        }
        #expect(trigger.next(after: start, zone: zone) == found)
    }
}
