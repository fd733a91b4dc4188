import Foundation

/// What a verb prints: one JSON document on standard output and nothing else there, or text for a person.
enum Output {
    static let isTerminal = isatty(1) == 1
    static let usesColor = isTerminal && ProcessInfo.processInfo.environment["NO_COLOR"] == nil

    static func json(_ value: some Encodable) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        encoder.dateEncodingStrategy = .custom { date, encoder in
            var container = encoder.singleValueContainer()
            try container.encode(iso8601(date))
        }
        var data = try encoder.encode(value)
        data.append(UInt8(ascii: "\n"))
        FileHandle.standardOutput.write(data)
    }

    /// With the offset of the person's zone.
    static func iso8601(_ date: Date) -> String {
        date.formatted(Date.ISO8601FormatStyle(timeZone: .current).timeZoneSeparator(.colon))
    }

    static func line(_ text: String = "") { FileHandle.standardOutput.write(Data((text + "\n").utf8)) }

    static func note(_ text: String) { FileHandle.standardError.write(Data((text + "\n").utf8)) }

    static func bold(_ text: String) -> String { usesColor ? "\u{1B}[1m\(text)\u{1B}[0m" : text }

    /// Warnings and storms.
    static func loud(_ text: String) -> String { usesColor ? "\u{1B}[1;33m\(text)\u{1B}[0m" : text }

    // MARK: Dates

    /// In the person's locale and zone, the relative time beside it.
    static func moment(_ date: Date, now: Date = Date()) -> String {
        let isNear = abs(date.timeIntervalSince(now)) < 20 * 3600
        let style = Date.FormatStyle(date: isNear ? .omitted : .abbreviated, time: .shortened)
        return "\(date.formatted(style)) (\(relative(date, now: now)))"
    }

    /// "in 3 h 12 min", "2 min ago".
    static func relative(_ date: Date, now: Date = Date()) -> String {
        let seconds = Int(date.timeIntervalSince(now).rounded())
        guard seconds != 0 else { return "now" }
        let span = duration(abs(seconds))
        return seconds >= 0 ? "in \(span)" : "\(span) ago"
    }

    static func duration(_ seconds: Int) -> String {
        switch seconds {
        case ..<60: return "\(seconds) s"
        case ..<3600: return "\(seconds / 60) min"
        case ..<86_400:
            let minutes = seconds % 3600 / 60
            return "\(seconds / 3600) h" + (minutes == 0 ? "" : " \(minutes) min")
        default:
            let hours = seconds % 86_400 / 3600
            return "\(seconds / 86_400) d" + (hours == 0 ? "" : " \(hours) h")
        }
    }

    static func bytes(_ count: Int64) -> String {
        switch count {
        case ..<1_000: return "\(count) B"
        case ..<1_000_000: return "\(count / 1_000) kB"
        default: return String(format: "%.1f MB", Double(count) / 1e6)
        }
    }
}
