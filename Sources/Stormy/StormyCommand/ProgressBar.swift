import BackgroundCommands
import Foundation
import ProcessSupport

/// A line on the terminal's error side that redraws itself: bytes, rate, time left. Elsewhere only what changes: why it waits.
final class ProgressBar: @unchecked Sendable {  // because it is called by one task at a time
    private var lastWaiting: String?
    private let isOn = isDrawn

    private static var isDrawn: Bool { Output.isTerminal(STDERR_FILENO) && canRedraw(ThisProcess.environment) }

    /// Makes room for a line of text; the next look draws the bar again.
    static func clearLine() {
        if isDrawn { try? FileHandle.standardError.write(contentsOf: Data("\r\u{1B}[K".utf8)) }
    }

    /// When and at how many bytes the rate's window began.
    private var window: (time: ContinuousClock.Instant, bytes: Int64)?
    private var rate: Double?

    /// Seconds over which a rate is taken.
    private static let rateWindow = 2.0

    private static func canRedraw(_ environment: [String: String]) -> Bool {
        environment["NO_COLOR"] == nil && !["", "dumb"].contains(environment["TERM"] ?? "")
    }

    /// - Parameter total: 0: nobody knows it.
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
            if total > done { rest.append("\(Output.duration(Int((Double(total - done) / rate).rounded(.up)))) left") }
        }
        let line = Self.line(done: done, of: total, rest, columns: Self.columns)
        try? FileHandle.standardError.write(contentsOf: Data("\r\u{1B}[K\(line)".utf8))
    }

    /// Columns of the terminal; 80 where it does not say.
    private static var columns: Int {
        var size = winsize()
        return ioctl(2, UInt(TIOCGWINSZ), &size) == 0 && size.ws_col > 0 ? Int(size.ws_col) : 80
    }

    /// One line that leaves the last column free: a line that wraps cannot be redrawn. The bar gives way first, then what stands
    /// last.
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
