/// A day of the proleptic Gregorian calendar. The result does not depend on the calendar, locale or time zone of the machine.
///
/// The calculation uses periods of 400 years. These years begin in March, so that a leap day is the last day of a year.
package struct CivilDay: Equatable, Sendable {
    package let year: Int
    /// The month, from 1 to 12.
    package let month: Int
    /// The day of the month, from 1 to 31.
    package let day: Int

    package init(year: Int, month: Int, day: Int) { (self.year, self.month, self.day) = (year, month, day) }

    /// Creates a day from the number of days since 1970-01-01.
    package init(daysSinceEpoch days: Int) {
        let (era, dayOfEra) = Self.parts(days + 719_468, of: 146_097)
        let yearOfEra = (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let monthFromMarch = (5 * dayOfYear + 2) / 153
        day = dayOfYear - (153 * monthFromMarch + 2) / 5 + 1
        month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
        year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
    }

    /// The number of days since 1970-01-01. If the day is greater than the length of the month, it counts as a day of the next
    /// month.
    package var daysSinceEpoch: Int {
        let (era, yearOfEra) = Self.parts(month <= 2 ? year - 1 : year, of: 400)
        let dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
        return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
    }

    /// Returns the quotient, rounded down, and the remainder.
    static func parts(_ number: Int, of size: Int) -> (quotient: Int, rest: Int) {
        let rest = ((number % size) + size) % size
        return ((number - rest) / size, rest)
    }
}
