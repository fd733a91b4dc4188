import Foundation
import Glibc

/// The time of a systemd timer, rounded up to a complete second.
///
/// For a time within the next day, only the time of day is written to the timer's file. If the timer is set to this time of day
/// again on the next day, the text of the file does not change. In this case the user manager does not have to read all units
/// again. If the clock was ahead and is corrected, the timer starts the agent after at most a day.
enum TimerSchedule: Equatable {
    case once(Date)
    /// The number of seconds after midnight, UTC.
    case daily(Int)

    private static let key = "OnCalendar="
    private static let day = 86_400
    /// The minimum number of seconds before a time of day, because a time of day that has just passed would mean the next day.
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

    /// The line of the timer's file that sets the time.
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
