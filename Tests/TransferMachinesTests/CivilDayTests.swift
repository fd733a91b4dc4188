import Foundation
import Testing
import TransferMachines

@Suite struct CivilDayTests {
    /// Compares the years 1600 to 2400 with Foundation's calendar.
    @Test func `days agree with the calendar of Foundation`() throws {
        var calendar = Calendar(identifier: .gregorian)
        calendar.timeZone = .gmt
        for days in stride(from: -135_140, through: 157_054, by: 13) {
            let parts = calendar.dateComponents([.year, .month, .day], from: Date(timeIntervalSince1970: Double(days) * 86_400))
            let day = CivilDay(daysSinceEpoch: days)
            #expect([day.year, day.month, day.day] == [parts.year, parts.month, parts.day])
        }
    }

    @Test func `a day has one number`() {
        for days in stride(from: -1_000_000, through: 3_000_000, by: 101) {
            #expect(CivilDay(daysSinceEpoch: days).daysSinceEpoch == days)
        }
        #expect(CivilDay(year: 2027, month: 2, day: 29).daysSinceEpoch == CivilDay(year: 2027, month: 3, day: 1).daysSinceEpoch)
        #expect(CivilDay(year: 1970, month: 1, day: 1).daysSinceEpoch == 0)
    }
}
