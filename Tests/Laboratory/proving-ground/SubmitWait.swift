import BackgroundLedger
import BackgroundRuntime
import BackgroundTasks
import Foundation
import Synchronization

/// Measures submits while the agent downloads a large file. For comparison, also measures durable writes to the same disk.
struct SubmitWait {
    /// The microseconds between two submits, and between two writes of the probe.
    private static let pause: useconds_t = 5_000

    let url: String
    let destination: String

    /// Measures until the download has ended. Returns JSON with the total time, and with the median and the longest time of
    /// submits and of writes. All times are in seconds.
    func measure() throws -> String {
        let ledger = try AppRuntime.shared.ledger()
        var record = TransferRecord(
            session: "measured", key: url, kind: .download, method: "GET", url: url, headers: [], now: Date())
        record.destination = destination
        _ = record.handle(.adopted(suspended: false))
        let (inserted, began) = (try ledger.write { [record] in try $0.insert(record) }, Date())
        let probe = DiskProbe(path: destination + ".probe", pause: Self.pause)
        probe.start()
        var (waits, end): ([Double], TransferRecord.State?) = ([], nil)
        while end?.isTerminal != true {
            let request = BGProcessingTaskRequest(identifier: "work.submitted")
            request.earliestBeginDate = Date().addingTimeInterval(86_400)
            waits.append(try Measurement.seconds { try BGTaskScheduler.shared.submit(request) })
            end = try ledger.read { try $0.transfer(inserted.id ?? 0) }?.state
            usleep(Self.pause)
        }
        waits.sort()
        let writes = probe.stop().sorted()
        return """
            {"longest": \(waits.last ?? 0), "median": \(waits[waits.count / 2]), "submits": \(waits.count), \
            "diskLongest": \(writes.last ?? 0), "diskMedian": \(writes[writes.count / 2]), \
            "seconds": \(Date().timeIntervalSince(began)), "end": "\(end?.rawValue ?? "gone")"}
            """
    }
}

/// Writes 8 KiB durably again and again, like a commit. The file to which it writes does not grow.
private final class DiskProbe: Sendable {
    private struct State {
        var seconds: [Double] = []
        var isStopping = false
    }

    private static let size = 4 << 20
    private static let piece = 8 << 10
    private let path: String
    private let pause: useconds_t
    private let state = Mutex(State())
    private let hasEnded = DispatchSemaphore(value: 0)

    init(path: String, pause: useconds_t) { (self.path, self.pause) = (path, pause) }

    func start() { Thread.detachNewThread { [self] in run() } }

    /// Ends the writes, and returns the seconds of each write.
    func stop() -> [Double] {
        state.withLock { $0.isStopping = true }
        hasEnded.wait()
        unlink(path)
        return state.withLock { $0.seconds }
    }

    private func run() {
        defer { hasEnded.signal() }
        let descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        defer { close(descriptor) }
        let bytes = [UInt8](repeating: 1, count: Self.size)
        guard pwrite(descriptor, bytes, bytes.count, 0) == bytes.count, fsync(descriptor) == 0 else { return }
        var offset = 0
        while !state.withLock({ $0.isStopping }) {
            let took = Measurement.seconds {
                _ = pwrite(descriptor, bytes, Self.piece, off_t(offset))
                fdatasync(descriptor)
            }
            state.withLock { $0.seconds.append(took) }
            offset = (offset + Self.piece) % Self.size
            usleep(pause)
        }
    }
}
