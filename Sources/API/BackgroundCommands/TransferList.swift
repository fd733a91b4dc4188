import Foundation

/// The transfers that the command `transfers` shows. Unfinished and failed transfers come first, and completed and cancelled
/// transfers follow. In each of the two groups, the newest transfer is last.
package struct TransferList {
    private let open: [TransferReport]
    private let ended: [TransferReport]
    /// The number of completed and cancelled transfers that are not shown.
    private let hidden: Int
    private let limit: Int

    /// - Parameter limit: The maximum number of completed and cancelled transfers to show.
    package init(_ reports: [TransferReport], limit: Int) {
        let done = reports.filter(\.isDone)
        (open, ended) = (reports.filter { !$0.isDone }, done.suffix(max(0, limit)))
        (hidden, self.limit) = (done.count - ended.count, limit)
    }

    /// - Parameters:
    ///   - name: A closure that returns the name that the user knows for a transfer, or `nil` to show the file or the address.
    ///   - speeds: The speed of each transfer in bytes per second, from which the remaining time is computed. The keys are the
    ///     ids of the transfers.
    ///   - isVerbose: `true` to show complete addresses and paths.
    package func lines(
        isVerbose: Bool = false, speeds: [String: Double] = [:], name: (TransferReport) -> String? = { _ in nil }
    ) -> [String] {
        guard !open.isEmpty || !ended.isEmpty || hidden > 0 else { return ["No transfers."] }
        var table = TextTable("ID", "KIND", "STATE", "NAME", "PROGRESS")
        for report in open + ended {
            table.add(
                report.cells(name: name(report), speed: speeds[report.id]),
                remarks: report.remarks + (isVerbose ? report.details : []))
        }
        let older = hidden == 1 ? "1 older transfer is" : "\(hidden) older transfers are"
        let rest = hidden == 0 ? [] : ["\(older) not shown. To show all transfers, use --limit \(limit + hidden)"]
        return (open.isEmpty && ended.isEmpty ? [] : table.lines) + rest
    }
}

/// The bytes per second of running transfers, measured between two reads of the ledger.
package struct TransferSpeeds {
    private var last: [String: (bytes: Int64, time: ContinuousClock.Instant)] = [:]
    package private(set) var bytesPerSecond: [String: Double] = [:]

    package init() {}

    package mutating func measure(_ reports: [TransferReport]) {
        let now = ContinuousClock.now
        let running = Set(reports.filter { $0.state == "running" }.map(\.id))
        // Speeds of transfers that do not run any more are removed.
        bytesPerSecond = bytesPerSecond.filter { running.contains($0.key) }
        last = last.filter { running.contains($0.key) }
        for report in reports where running.contains(report.id) {
            if let before = last[report.id], report.bytesDone > before.bytes {
                bytesPerSecond[report.id] = Double(report.bytesDone - before.bytes) / ((now - before.time) / .seconds(1))
            }
            if last[report.id]?.bytes != report.bytesDone { last[report.id] = (report.bytesDone, now) }
        }
    }
}
