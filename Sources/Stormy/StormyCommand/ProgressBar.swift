import BackgroundCommands
import Foundation
import ProcessSupport

/// A line on the terminal that shows bytes, rate and remaining time, and redraws itself. If standard error is not a terminal, only changes
/// of the waiting reason are printed.
final class ProgressBar: @unchecked Sendable {  // because it is called by one task at a time
    private var lastWaiting: String?
    private let isOn = isDrawn

    private static var isDrawn: Bool { Output.isTerminal(STDERR_FILENO) && canRedraw(ThisProcess.environment) }

    /// Clears the line, so that text can be printed. The bar is drawn again at its next update.
    static func clearLine() {
        if isDrawn { try? FileHandle.standardError.write(contentsOf: Data("\r\u{1B}[K".utf8)) }
    }

    /// The beginning of the rate's time window: the time, and the number of bytes.
    private var window: (time: ContinuousClock.Instant, bytes: Int64)?
    private var rate: Double?

    /// Seconds over which a rate is measured.
    private static let rateWindow = 2.0

    private static func canRedraw(_ environment: [String: String]) -> Bool {
        environment["NO_COLOR"] == nil && !["", "dumb"].contains(environment["TERM"] ?? "")
    }

    /// - Parameter total: the number of all bytes, or 0 if it is unknown.
    func show(done: Int64, of total: Int64, waiting: String?) {
        guard isOn else {
            if let waiting, waiting != lastWaiting { Output.note("waiting: \(waiting)") }
            lastWaiting = waiting ?? lastWaiting
            return
        }
        measure(done)
        var rest: [String] = []
        if let waiting {
            rest.append("waiting: \(Output.withoutControls(waiting))")
        } else if let rate, rate >= 1 {
            rest.append("\(Output.bytes(Int64(rate)))/s")
            if total > done { rest.append(Output.timeLeft(total - done, at: rate)) }
        }
        let line = Self.line(done: done, of: total, rest, columns: Self.columns)
        try? FileHandle.standardError.write(contentsOf: Data("\r\u{1B}[K\(line)".utf8))
    }

    /// The number of columns of the terminal, or 80 if the terminal does not report it.
    private static var columns: Int {
        var size = winsize()
        return ioctl(2, UInt(TIOCGWINSZ), &size) == 0 && size.ws_col > 0 ? Int(size.ws_col) : 80
    }

    /// Returns a line that leaves the last column free, because a wrapped line cannot be redrawn. If the space is short, the bar is removed
    /// first, and then the end of the text.
    private static func line(done: Int64, of total: Int64, _ rest: [String], columns: Int) -> String {
        var words = ([total > 0 ? "\(Output.bytes(done)) of \(Output.bytes(total))" : Output.bytes(done)] + rest)
            .joined(separator: "  ")
        let width = min(30, columns - 1 - words.count - 1)
        if total > 0, width >= 5 {
            let filled = Int(Double(width) * Double(min(done, total)) / Double(total))
            words = String(repeating: "█", count: filled) + String(repeating: "░", count: width - filled) + " " + words
        }
        return String(words.prefix(max(columns - 1, 0)))
    }

    private func measure(_ done: Int64) {
        let now = ContinuousClock.now
        guard let window, done >= window.bytes else {
            window = (now, done)
            return
        }
        let seconds = (now - window.time) / .seconds(1)
        guard seconds >= (rate == nil ? 0.5 : Self.rateWindow) else { return }
        rate = Double(done - window.bytes) / seconds
        self.window = (now, done)
    }

    func end() {
        if isOn { try? FileHandle.standardError.write(contentsOf: Data("\r\u{1B}[K".utf8)) }
    }
}
