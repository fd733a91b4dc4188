import BackgroundLedger
import BackgroundScheduling
import Foundation
import ProcessSupport
import Synchronization

/// Who in this process handles which kind of launch. The API modules enter themselves here; none knows the other.
package final class LaunchHandlers: Sendable {
    package static var shared: LaunchHandlers { AppRuntime.shared.part { LaunchHandlers() } }

    /// Runs a launch to its end; returns whether it succeeded, or `nil` when nobody there handles it. Cancelled when the
    /// time is up.
    package typealias Handler = @Sendable (LaunchRecord) async -> Bool?

    private let handlers = Mutex<[LaunchKind: [Handler]]>([:])

    private init() {}

    package func add(_ kind: LaunchKind, _ handler: @escaping Handler) {
        handlers.withLock { $0[kind, default: []].append(handler) }
    }

    /// Runs this process's launch and ends the process. Returns at once: the work goes on in a task of its own.
    @discardableResult
    package func run(_ context: LaunchContext) -> Task<Void, Never>? {
        let record: LaunchRecord
        do {
            record = try context.begin()
        } catch {
            StandardError.write("launch \(context.id) cannot begin: \(error)\n")
            context.leave(74)
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
            await context.letListenersHear()
            context.finish(success: !words.contains(false))
        }
        context.onWarning { _ in work.cancel() }
        return work
    }
}
