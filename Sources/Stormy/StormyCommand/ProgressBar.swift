import BackgroundCommands
import Foundation

/// A line on the terminal's error side that redraws itself: bytes, rate, time left. Elsewhere only what changes: why it waits.
final class ProgressBar: @unchecked Sendable {  // because it is called by one task at a time
    private var lastWaiting: String?
    private let isOn = isatty(2) == 1 && ProcessInfo.processInfo.environment["NO_COLOR"] == nil
    /// When and at how many bytes the rate's window began.
    private var window: (time: ContinuousClock.Instant, bytes: Int64)?
    private var rate: Double?

    /// Seconds over which a rate is taken.
    private static let rateWindow = 2.0

    /// - Parameter total: 0: nobody knows it.
    func show(done: Int64, of total: Int64, waiting: String?) {
        guard isOn else {
            if let waiting, waiting != lastWaiting { Output.note("waiting: \(waiting)") }
            lastWaiting = waiting ?? lastWaiting
            return
        }
        measure(done)
        var parts: [String] = []
        if total > 0 {
            let width = 30
            let filled = Int(Double(width) * Double(min(done, total)) / Double(total))
            parts.append(String(repeating: "█", count: filled) + String(repeating: "░", count: width - filled))
            parts.append("\(Output.bytes(done)) of \(Output.bytes(total))")
        } else {
            parts.append(Output.bytes(done))
        }
        if let waiting {
            parts.append(" waiting: \(Output.withoutControls(waiting))")
        } else if let rate, rate >= 1 {
            parts.append(" \(Output.bytes(Int64(rate)))/s")
            if total > done { parts.append(" \(Output.duration(Int((Double(total - done) / rate).rounded(.up)))) left") }
        }
        FileHandle.standardError.write(Data("\r\u{1B}[K\(parts.joined(separator: " "))".utf8))
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
        if isOn { FileHandle.standardError.write(Data("\r\u{1B}[K".utf8)) }
    }
}
