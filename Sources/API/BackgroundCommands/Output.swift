import BackgroundRuntime
import Foundation
import ProcessSupport

/// The output of a command. A command prints exactly one JSON document on standard output, or text for the user.
package enum Output {
    package static func usesColor(on descriptor: Int32 = STDOUT_FILENO) -> Bool {
        Terminal.isTerminal(descriptor) && Terminal.understandsSequences && !Terminal.refusesColor
    }

    /// Prepares the standard descriptors and the umask. If a standard descriptor is closed, the next opened file would get its
    /// number, and output would be written to that file. For this reason, call this method before any file is opened. The umask
    /// is set so that the user can read and write each file that the process creates.
    package static func prepare() {
        StandardDescriptors.occupyClosed()
        umask(umask(0o077) & ~0o700)
    }

    package static func json(_ value: some Encodable) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        encoder.dateEncodingStrategy = .custom { date, encoder in
            var container = encoder.singleValueContainer()
            try container.encode(iso8601(date))
        }
        var data = try encoder.encode(value)
        data.append(UInt8(ascii: "\n"))
        write(data, to: STDOUT_FILENO)
    }

    /// Formats a date with the offset of the user's time zone.
    package static func iso8601(_ date: Date) -> String {
        date.formatted(Date.ISO8601FormatStyle(timeZone: zone).timeZoneSeparator(.colon))
    }

    /// Prints a complete document unchanged.
    package static func document(_ text: String) { write(Data(text.utf8), to: STDOUT_FILENO) }

    /// Writes a file. An existing file with this name is replaced. A folder, a link, a device or a pipe is not replaced.
    ///
    /// - Parameter isPrivate: `true` if other users must not be able to read the file.
    package static func file(_ data: Data, to path: String, isPrivate: Bool = false) throws {
        let file = URL(exactPath: path)
        var found = stat()
        if lstat(file.path, &found) == 0, found.st_mode & S_IFMT != S_IFREG {
            let kind = [S_IFLNK: "a link", S_IFDIR: "a folder"][found.st_mode & S_IFMT] ?? "not a file"
            throw CommandFailure(.cannotCreate, "\(path): is \(kind)")
        }
        do {
            try data.write(to: file, options: .atomic)
        } catch {
            throw CommandFailure(.cannotCreate, "\(path): \((error as NSError).localizedDescription)")
        }
        if isPrivate { chmod(file.path, 0o600) }
    }

    package static func line(_ text: String = "") { _ = writeOutputLine(text) }

    /// - Returns: `false` if the line was not written, because standard output is closed or full.
    package static func writeOutputLine(_ text: String) -> Bool { writeLine(text, to: STDOUT_FILENO) }

    package static func note(_ text: String) { _ = writeNote(text) }

    /// Prints a text as one line on standard error. Line breaks in the text, for example in a file name, become spaces.
    package static func sentence(_ text: String) { note(oneLine(text)) }

    package static func oneLine(_ text: String) -> String { text.replacingOccurrences(of: "\n", with: " ") }

    /// - Returns: `false` if the note was not written, because standard error is closed or full.
    package static func writeNote(_ text: String) -> Bool { writeLine(text, to: STDERR_FILENO) }

    private static func writeLine(_ text: String, to descriptor: Int32) -> Bool {
        var text = withoutControls(text, keeping: marks)
        if let columns = Terminal.columns(of: descriptor) {
            text = WordWrap.wrap(text, columns: columns) { marks.contains(String($0)) }
        }
        return write(Data((colored(text, on: descriptor) + "\n").utf8), to: descriptor)
    }

    // Characters that mark where a color begins and ends. When a line is printed, these marks are replaced by control sequences.
    // Texts from servers and file names cannot contain these marks, because the marks are removed from such texts first.
    private static let boldMark = "\u{F0001}"
    private static let loudMark = "\u{F0002}"
    private static let plainMark = "\u{F0003}"
    private static let marks = [boldMark, loudMark, plainMark]

    package static func bold(_ text: String) -> String { boldMark + withoutControls(text) + plainMark }

    /// Returns the text with the color marks for warnings and storms.
    package static func loud(_ text: String) -> String { loudMark + withoutControls(text) + plainMark }

    private static func colored(_ text: String, on descriptor: Int32) -> String {
        let usesColor = usesColor(on: descriptor)
        return text.replacingOccurrences(of: boldMark, with: usesColor ? "\u{1B}[1m" : "")
            .replacingOccurrences(of: loudMark, with: usesColor ? "\u{1B}[1;33m" : "")
            .replacingOccurrences(of: plainMark, with: usesColor ? "\u{1B}[0m" : "")
    }

    /// Removes characters that a terminal would interpret: control characters (C0 and C1), and marks that change the writing
    /// direction.
    package static func withoutControls(_ text: String, keeping kept: [String] = []) -> String {
        String(
            String.UnicodeScalarView(
                text.unicodeScalars.filter { scalar in
                    if kept.contains(where: { $0.unicodeScalars.first == scalar }) { return true }
                    switch scalar.value {
                    case 0x0A: return true
                    case 0..<0x20, 0x7F..<0xA0, 0x202A...0x202E, 0x2066...0x2069, 0x200E, 0x200F, 0xF0001...0xF0003: return false
                    default: return true
                    }
                }))
    }

    /// Waits until standard output and standard error accept output. A stopped terminal (Ctrl-S) does not accept output, and a
    /// full pipe does not accept output until the reader reads.
    ///
    /// - Returns: `false` if the reader of a pipe has closed the pipe.
    package static func takes() -> Bool {
        if CapturedOutput.current != nil { return true }
        return [STDOUT_FILENO, STDERR_FILENO].allSatisfy { descriptor in
            guard StandardDescriptors.canWrite(descriptor) else { return false }
            var output = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
            while poll(&output, 1, -1) < 0, errno == EINTR {}
            return output.revents & Int16(POLLERR | POLLHUP | POLLNVAL) == 0
        }
    }

    /// `true` if output could not be written, for example because the disk is full.
    package private(set) nonisolated(unsafe) static var hasFailed = false

    @discardableResult
    package static func write(_ data: Data, to descriptor: Int32) -> Bool {
        if let captured = CapturedOutput.current {
            captured.append(data, to: descriptor)
            return true
        }
        do {
            try FileHandle(fileDescriptor: descriptor).write(contentsOf: data)
            return true
        } catch {
            // EPIPE does not count as a failure, because a reader such as `head` may close the pipe before all output was
            // written.
            let cause = (error as NSError).userInfo[NSUnderlyingErrorKey] as? NSError
            if cause?.domain == NSPOSIXErrorDomain, cause?.code == Int(EPIPE) { return false }
            let isFirst = !hasFailed
            hasFailed = true
            if isFirst, descriptor == STDOUT_FILENO {
                let reason = cause.map { String(cString: strerror(Int32($0.code))) } ?? (error as NSError).localizedDescription
                note("\(AppRuntime.programName): standard output cannot be written: \(reason)")
            }
            return false
        }
    }

    package static func clearScreen() {
        if Terminal.isTerminal(STDOUT_FILENO), Terminal.understandsSequences {
            write(Data("\u{1B}[H\u{1B}[2J".utf8), to: STDOUT_FILENO)
        }
    }

    // MARK: Dates

    /// The time zone for dates. On a test host, this zone is the zone of the test. In other processes, this zone is
    /// `TimeZone.current`, which Foundation caches, because a list may contain many dates.
    private static var zone: TimeZone { AppRuntime.isOnTestHost ? AppRuntime.shared.zone : .current }

    /// Formats a date in the user's locale and time zone, followed by the relative time, for example "12:00 (in 3 h)".
    package static func moment(_ date: Date, now: Date = AppRuntime.shared.now) -> String {
        let isNear = abs(date.timeIntervalSince(now)) < 20 * 3600
        // This style keeps the leading zero of "02:00" if the locale has a leading zero. The text is therefore equal to the text
        // in a notification. The style `time: .shortened` always removes the zero.
        let hours = Date.FormatStyle(locale: UserLocale.current, timeZone: zone).hour().minute()
        let style = isNear ? hours : hours.year().month(.abbreviated).day()
        // ICU inserts a narrow no-break space before "PM". The space is replaced, because some terminals cannot show it.
        return "\(date.formatted(style).replacingOccurrences(of: "\u{202F}", with: " ")) (\(relative(date, now: now)))"
    }

    /// Formats the time from now, for example "in 3 h 12 min" or "2 min ago".
    package static func relative(_ date: Date, now: Date = AppRuntime.shared.now) -> String {
        let centuries = 1e11
        let seconds = Int(min(max(date.timeIntervalSince(now), -centuries), centuries).rounded())
        guard seconds != 0 else { return "now" }
        let span = duration(abs(seconds))
        return seconds >= 0 ? "in \(span)" : "\(span) ago"
    }

    package static func duration(_ seconds: Int) -> String {
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

    /// Returns the remaining time for a number of bytes at a rate in bytes per second, for example "12 s left".
    package static func timeLeft(_ bytes: Int64, at rate: Double) -> String {
        "\(duration(Int((Double(bytes) / rate).rounded(.up)))) left"
    }

    /// Returns a size such as "640 kB", "3.4 MB" or "74 GB", with the decimal sign of the user's locale.
    package static func bytes(_ count: Int64) -> String {
        func text(_ unit: Double, _ name: String) -> String {
            let number = Double(count) / unit
            let digits = FloatingPointFormatStyle<Double>(locale: UserLocale.current).grouping(.never)
                .precision(.fractionLength(number < 100 ? 1 : 0))
            return "\(number.formatted(digits)) \(name)"
        }
        switch count {
        case ..<1_000: return "\(count) B"
        case ..<1_000_000: return "\(count / 1_000) kB"
        case ..<1_000_000_000: return text(1e6, "MB")
        case ..<1_000_000_000_000: return text(1e9, "GB")
        default: return text(1e12, "TB")
        }
    }
}
