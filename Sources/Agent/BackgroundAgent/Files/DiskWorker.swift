import Foundation
import ProcessSupport
import Synchronization

/// A long operation on a file.
protocol DiskWork: AnyObject, Sendable {
    /// Runs one turn (a short part) of the work. A turn must be short, because other work waits for the end of the turn.
    func work() -> DiskWorker.Rest
}

/// Hashes and syncs files on a separate thread. On the thread of the transport or of the agent, these operations would block all
/// transfers. The separate thread sleeps while it has no work.
package final class DiskWorker: @unchecked Sendable {  // This is safe because the lock of the condition guards the queue.
    package static let shared = DiskWorker()

    /// `false` if the worker has no thread and works only when it is called. Tests with simulated time use such a worker, because
    /// the work is then complete when the call returns.
    let hasThread: Bool

    /// If an ended attempt has at most this number of bytes without a digest, the owner of the attempt waits for the digest.
    let waitedFor: Int64

    /// The system calls for the files of this worker and for all other files of transfers.
    package let calls: FileCalls

    /// - Parameter waitedFor: The maximum number of bytes without a digest for which the owner of an attempt waits. If
    ///   `waitedFor` is negative, the owner never waits.
    package init(hasThread: Bool = true, waitedFor: Int64 = 16 << 20, calls: FileCalls = FileCalls()) {
        (self.hasThread, self.waitedFor, self.calls) = (hasThread, waitedFor, calls)
    }

    /// The work that is left after one turn.
    enum Rest {
        case nothing
        /// The task has more work, which continues in the next turn.
        case more
        /// The task has only a little work. The worker does this work when no more data has arrived for one second.
        case little
    }

    /// The time without new data after which a small amount of work gets a turn.
    private static let patience = Duration.seconds(1)

    /// A task that waits for its turn. The reference is weak, because a small file is often complete before its turn. The file
    /// object is then deallocated and its descriptor is closed immediately.
    private struct Waiting {
        weak var task: (any DiskWork)?
        let due: SuspendingClock.Instant
    }

    private let condition = MonotonicCondition()
    private var queue: [any DiskWork] = []
    private var later: [Waiting] = []
    private var isRunning = false

    /// Queues a task. `rest` is the amount of work that the task has.
    func enqueue(_ task: any DiskWork, _ rest: Rest) {
        if case .nothing = rest { return }
        condition.lock()
        defer { condition.unlock() }
        if hasThread, !isRunning {
            isRunning = true
            Thread.detachNewThread { [self] in run() }
        }
        insert(task, rest)
        condition.broadcast()
    }

    /// Waits until `isDone` returns `true`. The worker checks `isDone` after each turn of work.
    func wait(until isDone: () -> Bool) {
        if !hasThread { catchUp() }
        condition.lock()
        defer { condition.unlock() }
        while !isDone() { condition.wait() }
    }

    private func insert(_ task: any DiskWork, _ rest: Rest) {
        guard !queue.contains(where: { $0 === task }) else { return }
        switch rest {
        case .nothing: break
        case .more:
            later.removeAll { $0.task === task }
            queue.append(task)
        case .little: later.append(Waiting(task: task, due: .now + Self.patience))
        }
    }

    /// Does all queued work on the caller's thread.
    package func catchUp() {
        while true {
            condition.lock()
            if queue.isEmpty {
                queue = later.compactMap(\.task)
                later = []
            }
            let task = queue.isEmpty ? nil : queue.removeFirst()
            condition.unlock()
            guard let task else { return }
            var rest = task.work()
            while case .more = rest { rest = task.work() }
        }
    }

    private func run() {
        while true {
            condition.lock()
            while queue.isEmpty { waitForWork() }
            let task = queue.removeFirst()
            condition.unlock()
            // Files take turns, so that a large file does not block small files.
            let rest = task.work()
            condition.lock()
            insert(task, rest)
            condition.broadcast()
            condition.unlock()
        }
    }

    /// Sleeps until a task arrives, or until a task with little work has waited for one second.
    private func waitForWork() {
        guard let first = later.first else { return condition.wait() }
        if condition.wait(until: first.due) || !queue.isEmpty { return }
        later.removeFirst()
        if let task = first.task { insert(task, .more) }
    }
}
