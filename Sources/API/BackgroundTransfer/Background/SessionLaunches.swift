import BackgroundLedger
import BackgroundRuntime
import BackgroundScheduling
import Foundation
import Synchronization

/// Launches for the events of a background session, in an app that has no scene for them: a session with a delegate hears of them, or
/// a handler that makes one.
final class SessionLaunches: Sendable {
    static var shared: SessionLaunches { AppRuntime.shared.part { SessionLaunches() } }

    typealias EventsHandler = @MainActor @Sendable (String, @escaping @Sendable () -> Void) -> Void

    private let handler = Mutex<EventsHandler?>(nil)

    private init() { LaunchHandlers.shared.add(.urlSession) { await SessionLaunches.shared.run($0) } }

    func set(_ handler: @escaping EventsHandler) { self.handler.withLock { $0 = handler } }

    /// `nil`: nobody here hears of this session.
    private func run(_ launch: LaunchRecord) async -> Bool? {
        let identifier = launch.identifier
        if let handler = handler.withLock({ $0 }) {
            await call(handler, identifier)
        } else if AppRuntime.shared.part({ KnownSessions() }).listening(identifier, LaunchContext.currentNumber) == nil {
            return nil
        }
        // Its delegate is waited for, as after every handler.
        // A delegate may hand what it heard to another queue.
        LaunchContext.current?.stay { await LaunchContext.graceAfterResult() }
        return true
    }

    /// Until it says that it is done, or this work is cancelled, because the time is up.
    private func call(_ handler: @escaping EventsHandler, _ identifier: String) async {
        let (done, isDone) = AsyncStream.makeStream(of: Void.self)
        await MainActor.run { handler(identifier) { isDone.finish() } }
        for await _ in done {}
    }
}
