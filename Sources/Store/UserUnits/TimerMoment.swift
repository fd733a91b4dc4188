import Foundation
import Glibc

/// What a timer waits for, in whole seconds that never come before the moment itself.
///
/// A time of day serves for a moment within a day. A check at the same time the next day then needs no other text, so the user manager does
/// not read all its units again; and after a clock that was ahead it is no more than a day until the agent looks again.
enum TimerMoment: Equatable {
    case once(Date)
    /// Seconds after midnight, by UTC and by the clock of this machine.
    ///
    /// The timer waits for both, which are the same moment. In a zone that was changed while nobody was logged in whichever comes first starts
    /// the agent, which plans anew: what is due on the person's clock comes in time there, too.
    case daily(utc: Int, local: Int)

    private static let key = "OnCalendar="
    private static let day = 86_400
    /// A time of day that has just passed is the next day's.
    private static let margin: TimeInterval = 15

    init(_ instant: Date, now: Date) {
        let seconds = instant.timeIntervalSince1970.rounded(.up)
        let isWithinADay = seconds - now.timeIntervalSince1970 < TimeInterval(Self.day)
        if instant.timeIntervalSince(now) > Self.margin, isWithinADay {
            self = .daily(utc: Int(seconds) % Self.day, local: Self.local(seconds))
        } else {
            self = .once(Date(timeIntervalSince1970: seconds))
        }
    }

    private static func local(_ seconds: Double) -> Int {
        var (seconds, parts) = (time_t(seconds), tm())
        localtime_r(&seconds, &parts)
        return (Int(parts.tm_hour) * 60 + Int(parts.tm_min)) * 60 + Int(parts.tm_sec)
    }

    // MARK: As a timer's file has it

    /// `nil`: somebody else wrote it.
    init?(timer text: String) {
        let lines = text.split(separator: "\n").filter { $0.hasPrefix(Self.key) }.map { $0.dropFirst(Self.key.count) }
        func numbers(_ line: Substring) -> [Int32] { line.split { !$0.isNumber }.compactMap { Int32($0) } }
        guard let first = lines.first, first.hasSuffix(" UTC") else { return nil }
        if lines.count == 2, lines.allSatisfy({ $0.hasPrefix("*-*-* ") && numbers($0).count == 3 }) {
            let times = lines.map { line in numbers(line).reduce(0) { $0 * 60 + Int($1) } }
            self = .daily(utc: times[0], local: times[1])
            return
        }
        let date = numbers(first)
        guard lines.count == 1, date.count == 6 else { return nil }
        var parts = tm()
        (parts.tm_year, parts.tm_mon, parts.tm_mday) = (date[0] - 1900, date[1] - 1, date[2])
        (parts.tm_hour, parts.tm_min, parts.tm_sec) = (date[3], date[4], date[5])
        self = .once(Date(timeIntervalSince1970: Double(timegm(&parts))))
    }

    /// Lines of a timer's file.
    var lines: String {
        let lines: [String]
        switch self {
        case .once(let instant):
            var (seconds, parts) = (time_t(instant.timeIntervalSince1970), tm())
            gmtime_r(&seconds, &parts)
            let day = "\(parts.tm_year + 1900)-\(Self.two(Int(parts.tm_mon) + 1))-\(Self.two(Int(parts.tm_mday)))"
            let time = (Int(parts.tm_hour) * 60 + Int(parts.tm_min)) * 60 + Int(parts.tm_sec)
            lines = ["\(day) \(Self.time(time)) UTC"]
        case .daily(let utc, let local): lines = ["*-*-* \(Self.time(utc)) UTC", "*-*-* \(Self.time(local))"]
        }
        return lines.map { "\(Self.key)\($0)\n" }.joined()
    }

    private static func time(_ seconds: Int) -> String {
        "\(two(seconds / 3_600)):\(two(seconds / 60 % 60)):\(two(seconds % 60))"
    }

    private static func two(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }

    // MARK: When it comes

    /// For a timer that was set at `start`.
    func instant(from start: Date) -> Date {
        switch self {
        case .once(let instant): return instant
        case .daily(let utc, _):
            let since = start.timeIntervalSince1970
            let midnight = (since / Double(Self.day)).rounded(.down) * Double(Self.day)
            let today = midnight + Double(utc)
            return Date(timeIntervalSince1970: today >= since ? today : today + Double(Self.day))
        }
    }
}
