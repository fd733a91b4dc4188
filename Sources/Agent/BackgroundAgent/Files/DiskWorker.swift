import Foundation
import ProcessSupport
import Synchronization

/// Work on a file that takes long.
protocol DiskWork: AnyObject, Sendable {
    /// One turn, short enough that others can wait for it.
    func work() -> DiskWorker.Rest
}

/// One thread for what would hold up the transport's or the agent's, and with it every other transfer: hashing and syncing files.
/// Sleeps while there is nothing to do.
package final class DiskWorker: @unchecked Sendable {  // because the condition's lock guards the queue
    package static let shared = DiskWorker()

    /// `false`: it has no thread and works when it is told to, so that in virtual time it is done by a known moment.
    let hasThread: Bool

    /// Bytes that may be left to hash when an attempt ends for its owner to wait for them.
    let waitedFor: Int64

    /// The calls on the files that it works on, and on all others of the transfers.
    package let calls: FileCalls

    /// - Parameter waitedFor: bytes left at an end that its owner waits for; less than none: it never does.
    package init(hasThread: Bool = true, waitedFor: Int64 = 16 << 20, calls: FileCalls = FileCalls()) {
        (self.hasThread, self.waitedFor, self.calls) = (hasThread, waitedFor, calls)
    }

    /// What is left of a file's work after one turn.
    enum Rest {
        case nothing
        /// Go on, in its turn.
        case more
        /// Too little to be worth a turn of its own now; once nothing more has come for a while it is.
        case little
    }

    /// Silence after which a little is worth a turn.
    private static let patience = Duration.seconds(1)

    /// Weak: a small file is mostly whole and gone before its moment comes, and its descriptor with it.
    private struct Waiting {
        weak var task: (any DiskWork)?
        let due: SuspendingClock.Instant
    }

    private let condition = MonotonicCondition()
    private var queue: [any DiskWork] = []
    private var later: [Waiting] = []
    private var isRunning = false

    /// So much is to be done for this task.
    func take(_ task: any DiskWork, _ rest: Rest) {
        if case .nothing = rest { return }
        condition.lock()
        defer { condition.unlock() }
        if hasThread, !isRunning {
            isRunning = true
            Thread.detachNewThread { [self] in run() }
        }
        enqueue(task, rest)
        condition.broadcast()
    }

    /// Returns when the condition holds; asked again after each piece of work.
    func wait(until isDone: () -> Bool) {
        if !hasThread { catchUp() }
        condition.lock()
        defer { condition.unlock() }
        while !isDone() { condition.wait() }
    }

    private func enqueue(_ task: any DiskWork, _ rest: Rest) {
        guard !queue.contains(where: { $0 === task }) else { return }
        switch rest {
        case .nothing: break
        case .more:
            later.removeAll { $0.task === task }
            queue.append(task)
        case .little: later.append(Waiting(task: task, due: .now + Self.patience))
        }
    }

    /// Does all that is left to do, on this thread.
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
            // In turns: a large file keeps no small one waiting.
            let rest = task.work()
            condition.lock()
            enqueue(task, rest)
            condition.broadcast()
            condition.unlock()
        }
    }

    /// Sleeps until somebody needs it, or a little has waited long enough.
    private func waitForWork() {
        guard let first = later.first else { return condition.wait() }
        if condition.wait(until: first.due) || !queue.isEmpty { return }
        later.removeFirst()
        if let task = first.task { enqueue(task, .more) }
    }
}
