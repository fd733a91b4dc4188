import Foundation

/// One thread for what would hold up the transport's, and with it every other transfer: hashing and syncing part files.
/// Sleeps while there is nothing to do.
final class DiskWorker: @unchecked Sendable {  // because the condition's lock guards the queue
    static let shared = DiskWorker()

    private let condition = NSCondition()
    private var queue: [DownloadFile] = []
    private var isRunning = false

    /// This file has bytes that are not hashed or not synced.
    func need(_ file: DownloadFile) {
        condition.lock()
        defer { condition.unlock() }
        if !isRunning {
            isRunning = true
            Thread.detachNewThread { [self] in run() }
        }
        guard !queue.contains(where: { $0 === file }) else { return }
        queue.append(file)
        condition.broadcast()
    }

    /// Returns when the condition holds; asked again after each piece of work.
    func wait(until isDone: () -> Bool) {
        condition.lock()
        defer { condition.unlock() }
        while !isDone() { condition.wait() }
    }

    private func run() {
        while true {
            condition.lock()
            while queue.isEmpty { condition.wait() }
            let file = queue.removeFirst()
            condition.unlock()
            // In turns: a large file keeps no small one waiting.
            let hasMore = file.work()
            condition.lock()
            if hasMore, !queue.contains(where: { $0 === file }) { queue.append(file) }
            condition.broadcast()
            condition.unlock()
        }
    }
}
