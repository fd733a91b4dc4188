import BackgroundLedger
import BackgroundRuntime
import BackgroundScheduling
import Foundation
import Synchronization

/// The launches for the events of a background session, in an app without a scene for these events. A session with a delegate
/// receives the events, or a handler makes such a session.
final class SessionLaunches: Sendable {
    static var shared: SessionLaunches { AppRuntime.shared.part { SessionLaunches() } }

    typealias EventsHandler = @MainActor @Sendable (String, @escaping @Sendable () -> Void) -> Void

    private let handler = Mutex<EventsHandler?>(nil)

    private init() { LaunchHandlers.shared.add(.urlSession) { await SessionLaunches.shared.run($0) } }

    func set(_ handler: @escaping EventsHandler) { self.handler.withLock { $0 = handler } }

    /// Returns `nil` if no code in this process receives the session's events.
    private func run(_ launch: LaunchRecord) async -> Bool? {
        let identifier = launch.identifier
        if let handler = handler.withLock({ $0 }) {
            await call(handler, identifier)
        } else if AppRuntime.shared.part({ SessionRegistry() }).listening(identifier, LaunchContext.currentNumber) == nil {
            return nil
        }
        // The launch waits for the delegate, as after every handler, because the delegate may handle the events on another queue.
        LaunchContext.current?.stayForGrace()
        return true
    }

    /// Calls the handler and waits until it calls its completion handler, or until this work is cancelled because the time is up.
    private func call(_ handler: @escaping EventsHandler, _ identifier: String) async {
        let (done, isDone) = AsyncStream.makeStream(of: Void.self)
        await MainActor.run { handler(identifier) { isDone.finish() } }
        for await _ in done {}
    }
}
