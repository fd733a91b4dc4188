import BackgroundCommands
import Foundation
import ProcessSupport

/// A line on the terminal that shows the transferred bytes, the rate and the remaining time. The line is redrawn at each update.
/// If standard error is not a terminal, only the reason why the transfers wait is printed, each time that this reason changes.
final class ProgressBar: @unchecked Sendable {  // because it is called by one task at a time
    private var lastWaiting: String?
    private let isOn = isDrawn

    private static var isDrawn: Bool {
        // In a test no bar is drawn, because the bar would be drawn on the terminal of the test run.
        CapturedOutput.current == nil && Terminal.isTerminal(STDERR_FILENO) && Terminal.understandsSequences
            && !Terminal.refusesColor
    }

    /// Clears the line, so that text can be printed. The bar is drawn again at its next update.
    static func clearLine() {
        if isDrawn { try? FileHandle.standardError.write(contentsOf: Data("\r\u{1B}[K".utf8)) }
    }

    /// The beginning of the period over which the rate is measured: the time, and the number of bytes at this time.
    private var window: (time: ContinuousClock.Instant, bytes: Int64)?
    private var rate: Double?

    /// The length in seconds of the period over which a rate is measured.
    private static let rateWindow = 2.0

    /// - Parameter total: The total number of bytes, or 0 if the number is unknown.
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
        let line = Self.line(done: done, of: total, rest, columns: Terminal.columns(of: STDERR_FILENO) ?? 80)
        try? FileHandle.standardError.write(contentsOf: Data("\r\u{1B}[K\(line)".utf8))
    }

    /// Returns a line that leaves the last column free, because a wrapped line cannot be redrawn. If the line is too long, the
    /// bar is left out first, and then the end of the text.
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
