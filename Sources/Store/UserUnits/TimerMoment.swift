import Foundation
import Glibc

/// What a timer waits for, in whole seconds that never come before the moment itself.
///
/// A time of day serves for a moment within a day. A check at the same time the next day then needs no other text, so the user manager does
/// not read all its units again; and after a clock that was ahead it is no more than a day until the agent looks again.
enum TimerMoment: Equatable {
    case once(Date)
    /// Seconds after midnight, UTC.
    case daily(Int)

    private static let key = "OnCalendar="
    private static let day = 86_400
    /// A time of day that has just passed is the next day's.
    private static let margin: TimeInterval = 15

    init(_ instant: Date, now: Date) {
        let seconds = instant.timeIntervalSince1970.rounded(.up)
        let isWithinADay = seconds - now.timeIntervalSince1970 < TimeInterval(Self.day)
        if instant.timeIntervalSince(now) > Self.margin, isWithinADay {
            self = .daily(Int(seconds) % Self.day)
        } else {
            self = .once(Date(timeIntervalSince1970: seconds))
        }
    }

    /// As a timer's file has it.
    var line: String {
        let time: String
        switch self {
        case .once(let instant):
            var (seconds, parts) = (time_t(instant.timeIntervalSince1970), tm())
            gmtime_r(&seconds, &parts)
            let day = "\(parts.tm_year + 1900)-\(Self.two(Int(parts.tm_mon) + 1))-\(Self.two(Int(parts.tm_mday)))"
            time = "\(day) \(Self.two(Int(parts.tm_hour))):\(Self.two(Int(parts.tm_min))):\(Self.two(Int(parts.tm_sec)))"
        case .daily(let seconds):
            time = "*-*-* \(Self.two(seconds / 3_600)):\(Self.two(seconds / 60 % 60)):\(Self.two(seconds % 60))"
        }
        return "\(Self.key)\(time) UTC\n"
    }

    private static func two(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
}
