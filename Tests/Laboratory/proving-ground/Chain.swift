import BackgroundTasks
import Dispatch
import Foundation

/// A chain of refreshes, as in many real apps. The handler of each refresh first completes its task, and then submits the next
/// refresh.
struct Chain: @unchecked Sendable {  // because the task guards its own state
    /// The part of the app that submits the next refresh: the `handler`, a `task`, or the `main` queue.
    let order: String
    let log: ProvingLog

    func run(_ task: BGTask) {
        switch order {
        case "handler": finish(task)
        case "task": Task { [self, task] in finish(task) }
        default:
            task.setTaskCompleted(success: true)
            DispatchQueue.main.async { submit() }
        }
    }

    private func finish(_ task: BGTask) {
        task.setTaskCompleted(success: true)
        submit()
    }

    private func submit() {
        let request = BGAppRefreshTaskRequest(identifier: "refresh")
        request.earliestBeginDate = Date()
        do { try BGTaskScheduler.shared.submit(request) } catch { log.write("not submitted: \(error)") }
        log.write("next")
    }
}
