import BackgroundScheduling
import Foundation
import TestSamples
import Testing

/// Tests that compare ``WallClockRule`` with Python's zoneinfo for every zone and every clock change between 1970 and 2040.
@Suite struct WallClockOracleTests {
    /// The years in which the time zone tables of ICU and of the system must agree. Foundation uses the tables of ICU. If ICU's
    /// tables and the system's tables disagree about a change, the test skips and lists the change.
    ///
    /// Changes before 1997 may be skipped, because only the system's tables contain the old history. The tz project keeps this
    /// history in `backzone`, and Debian includes `backzone`. Changes may also be skipped if a law is newer than one of the
    /// tables. Any other difference fails the test.
    private static let yearsOnWhichTablesMustAgree = 1997..<2025

    @Test(arguments: ["12:00", "00:00", "02:30", "23:30"])
    func `the next occurrence agrees with zoneinfo`(_ text: String) throws {
        let time = try #require(WallClockTime(parsing: text))
        let rule = WallClockRule.daily(time)
        let changes = try ZoneOracle.changes(at: text)
        #expect(changes.count > 10_000, "the system's tables were not found")
        let sample = TableSample.rows(of: changes, in: text)

        var zones: [String: TimeZone] = [:]
        var differences: [String] = []
        var unexplained: [String] = []
        var wrong: [String] = []
        var compared = 0
        for change in sample {
            guard let zone = zones[change.zone] ?? TimeZone(identifier: change.zone) else { continue }
            zones[change.zone] = zone
            guard Self.tablesAgree(zone, change) else {
                differences.append("\(change.zone) \(Date(timeIntervalSince1970: change.instant))")
                let year = 1970 + Int(change.instant / 31_556_952)
                if Self.yearsOnWhichTablesMustAgree.contains(year) { unexplained.append(differences[differences.count - 1]) }
                continue
            }
            compared += 1
            for (asked, expected) in Self.questions(change) {
                let answer = rule.next(after: Date(timeIntervalSince1970: asked), in: zone).timeIntervalSince1970
                if answer != expected { wrong.append("\(change.zone): after \(asked) \(answer), zoneinfo says \(expected)") }
            }
        }
        #expect(unexplained.isEmpty, "the tables differ: \(unexplained.prefix(20))")
        #expect(wrong.isEmpty, "\(wrong.count) wrong: \(wrong.prefix(10).joined(separator: "\n"))")
        #expect(compared > sample.count / 2)
        #expect(differences.count < compared / 10)
        if text == "12:00" { print("\(compared) changes compared; left out, as the tables differ: \(differences)") }
    }

    /// Returns start dates, each with the expected next occurrence. The start dates are each occurrence, one second before each
    /// occurrence, and the clock change.
    private static func questions(_ change: ZoneOracle.Change) -> [(asked: Double, expected: Double)] {
        let all = change.occurrences
        var questions: [(Double, Double)] = []
        for index in all.indices.dropFirst() { questions.append((all[index - 1], all[index])) }
        if all.count > 2 { questions.append((all[2] - 1, all[2])) }
        if let next = all.first(where: { $0 > change.instant }) { questions.append((change.instant, next)) }
        return questions
    }

    /// `true` if both tables have the same offsets directly before and at the change.
    private static func tablesAgree(_ zone: TimeZone, _ change: ZoneOracle.Change) -> Bool {
        func offset(_ step: Double) -> Int { zone.secondsFromGMT(for: Date(timeIntervalSince1970: change.instant + step)) }
        return offset(-1) == change.offsetBefore && offset(0) == change.offsetAfter
    }
}
