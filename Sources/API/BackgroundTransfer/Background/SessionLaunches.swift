import BackgroundLedger
import BackgroundRuntime
import BackgroundScheduling
import Foundation
import Synchronization

/// Runs launches for the events of a background session in apps that have no scene for these events. The events are received by a
/// session with a delegate. The app has already created this session, or the app's handler creates it.
final class SessionLaunches: Sendable {
    static var shared: SessionLaunches { AppRuntime.shared.part { SessionLaunches() } }

    typealias EventsHandler = @MainActor @Sendable (String, @escaping @Sendable () -> Void) -> Void

    /// A lock that protects a function directly would wrap the function again at each access, without a limit.
    private struct Known {
        var handler: EventsHandler?
    }

    private let known = Mutex(Known())

    private init() { LaunchHandlers.shared.add(.urlSession) { await SessionLaunches.shared.run($0) } }

    func set(_ handler: @escaping EventsHandler) { known.withLock { $0.handler = handler } }

    /// Runs a launch. Returns `nil` if no code in this process receives the session's events.
    private func run(_ launch: LaunchRecord) async -> Bool? {
        let identifier = launch.identifier
        if let handler = known.withLock({ $0.handler }) {
            await call(handler, identifier)
        } else if AppRuntime.shared.part({ SessionRegistry() }).listening(identifier, LaunchContext.currentNumber) == nil {
            return nil
        }
        // The process continues for a short time, because the delegate may handle the events on another queue.
        LaunchContext.current?.stayForGrace()
        return true
    }

    /// Calls the app's handler and waits until the app calls the completion handler. The wait also ends if this Swift task is
    /// cancelled at the launch's time limit.
    private func call(_ handler: @escaping EventsHandler, _ identifier: String) async {
        let (done, isDone) = AsyncStream.makeStream(of: Void.self)
        await MainActor.run { handler(identifier) { isDone.finish() } }
        for await _ in done {}
    }
}
