import BackgroundLedger
import BackgroundScheduling
import Foundation
import ProcessSupport
import Synchronization

/// The handlers of launches in this process, by kind. Each API module registers its own handlers here.
package final class LaunchHandlers: Sendable {
    package static var shared: LaunchHandlers { AppRuntime.shared.part { LaunchHandlers() } }

    /// A function that runs a launch to its end. The function returns whether the launch succeeded, or `nil` if the module does
    /// not handle the launch. The function's Swift task is cancelled when the time of the launch ends.
    package typealias Handler = @Sendable (LaunchRecord) async -> Bool?

    private let handlers = Mutex<[LaunchKind: [Handler]]>([:])

    private init() {}

    package func add(_ kind: LaunchKind, _ handler: @escaping Handler) {
        handlers.withLock { $0[kind, default: []].append(handler) }
    }

    /// Runs this process's launch and ends the process. Returns at once, because the work continues in a task.
    @discardableResult
    package func run(_ context: LaunchContext) -> Task<Void, Never>? {
        let record: LaunchRecord
        do {
            record = try context.begin()
        } catch {
            StandardError.write("launch \(context.id) cannot begin: \(error)\n")
            context.endProcess(74)
            return nil
        }
        let handlers = handlers.withLock { $0[record.kind] ?? [] }
        let work = Task(executorPreference: AppRuntime.shared.executor) {
            var words: [Bool] = []
            for handler in handlers {
                if let success = await handler(record) { words.append(success) }
            }
            guard !words.isEmpty else {
                return context.finish(
                    success: false, detail: "no handler for \(record.kind.rawValue) \(record.identifier) is registered")
            }
            await context.waitForListeners()
            context.finish(success: !words.contains(false))
        }
        context.onWarning { _ in
            work.cancel()
            context.endDeliveries()
        }
        return work
    }
}
