import Foundation
import Synchronization

/// Runs the tasks of an app on a test host, and reports whether a task runs or is queued.
///
/// Without this executor, virtual time could pass while an app computes on a busy machine.
final class HostedExecutor: TaskExecutor {
    private let queue = DispatchQueue(label: "hosted-tasks", attributes: .concurrent)
    private let jobs = Mutex(0)
    private let whenIdle: @Sendable () -> Void

    /// - Parameter whenIdle: The closure that is called each time when the last running task has ended.
    init(whenIdle: @escaping @Sendable () -> Void) {
        self.whenIdle = whenIdle
        // The executor is retained permanently. A task does not keep its executor alive, and the task may outlive its test.
        _ = Unmanaged.passRetained(self)
    }

    var isIdle: Bool { jobs.withLock { $0 == 0 } }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        jobs.withLock { $0 += 1 }
        queue.async { [self] in
            job.runSynchronously(on: asUnownedTaskExecutor())
            let isIdle = jobs.withLock { jobs in
                jobs -= 1
                return jobs == 0
            }
            if isIdle { whenIdle() }
        }
    }
}
