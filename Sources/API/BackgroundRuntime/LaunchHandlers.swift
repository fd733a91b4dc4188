import BackgroundLedger
import BackgroundScheduling
import Foundation
import ProcessSupport
import Synchronization

/// The functions that run launches in this process, by kind of launch. Each API module registers its own functions here.
package final class LaunchHandlers: Sendable {
    package static var shared: LaunchHandlers { AppRuntime.shared.part { LaunchHandlers() } }

    /// A function that runs a launch to its end. The function returns whether the launch succeeded, or `nil` if the function does
    /// not handle this launch. The function's Swift task is cancelled at the launch's time limit.
    package typealias Handler = @Sendable (LaunchRecord) async -> Bool?

    private let handlers = Mutex<[LaunchKind: [Handler]]>([:])

    private init() {}

    package func add(_ kind: LaunchKind, _ handler: @escaping Handler) {
        handlers.withLock { $0[kind, default: []].append(handler) }
    }

    /// Starts a Swift task that runs this process's launch and then ends the process. The method returns immediately.
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
