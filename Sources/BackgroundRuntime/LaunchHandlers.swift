import BackgroundLedger
import BackgroundScheduling
import Foundation
import Synchronization

/// Who in this process handles which kind of launch. The API modules enter themselves here; none knows the other.
public final class LaunchHandlers: Sendable {
    public static let shared = LaunchHandlers()

    /// Runs a launch to its end; returns whether it succeeded. Cancelled when the time is up.
    public typealias Handler = @Sendable (LaunchRecord) async -> Bool

    private let handlers = Mutex<[LaunchKind: Handler]>([:])

    private init() {}

    public func set(_ kind: LaunchKind, _ handler: @escaping Handler) {
        handlers.withLock { $0[kind] = handler }
    }

    /// Runs this process's launch and ends the process. Returns at once: the work goes on in a task of its own.
    public func run(_ context: LaunchContext) {
        let record: LaunchRecord
        do {
            record = try context.begin()
        } catch {
            FileHandle.standardError.write(Data("launch \(context.id) cannot begin: \(error)\n".utf8))
            exit(74)
        }
        guard let handler = handlers.withLock({ $0[record.kind] }) else {
            return context.finish(success: false, detail: "no handler for \(record.kind.rawValue) is registered")
        }
        let work = Task {
            let success = await handler(record)
            context.finish(success: success)
        }
        context.onWarning { _ in work.cancel() }
    }
}
