import BackgroundLedger
import Synchronization

/// The transfers whose ends a process delivers to the app. A process whose work is complete continues while attempts at these
/// transfers are running.
package final class ActiveTransfers: Sendable {
    /// The transfers of the launch that the current Swift task belongs to, or of this process if the task belongs to no launch.
    package static var current: ActiveTransfers { LaunchContext.current?.begun ?? AppRuntime.shared.part { ActiveTransfers() } }

    /// The tasks of ordinary sessions that are not suspended and whose ends were not delivered to the app, and transfers that are
    /// awaited.
    package let ordinary = WorkCounter()
    /// Transfers of background sessions whose ends this process delivers to the app.
    private let background = Mutex<Set<Int64>>([])

    package func insert(_ transfer: Int64) { background.withLock { _ = $0.insert(transfer) } }

    /// `false` if an attempt may be running.
    var isEmpty: Bool { ordinary.isEmpty && background.withLock { $0.isEmpty } }

    /// Waits until no attempt is under way and the ends were delivered to the app.
    ///
    /// - Returns: `false` if no attempt was under way.
    func attemptsEnded() async -> Bool {
        let hasOrdinary = !ordinary.isEmpty
        await ordinary.finished()
        guard background.withLock({ !$0.isEmpty }) else { return hasOrdinary }
        let wasUnderWay = Mutex(false)
        // If the ledger cannot be read at the moment, the read is repeated.
        _ = try? await AppRuntime.shared.wait { [self] transaction -> Bool? in
            guard try transaction.isUnderWay(background.withLock { $0 }) else { return true }
            wasUnderWay.withLock { $0 = true }
            return nil
        }
        return hasOrdinary || wasUnderWay.withLock { $0 }
    }

    /// Returns when no attempt is running, and the app's code had a moment to begin another transfer after the last end.
    ///
    /// - Parameter seconds: the time limit of the wait.
    package func finished(within seconds: Double) async {
        guard seconds > 0, !isEmpty else { return }
        let (quiet, isQuiet) = AsyncStream.makeStream(of: Void.self)
        let cancelAlarm = AppRuntime.shared.alarm(after: seconds) { isQuiet.finish() }
        let work = Task(executorPreference: AppRuntime.shared.executor) {
            await self.untilQuiet()
            isQuiet.finish()
        }
        for await _ in quiet {}
        work.cancel()
        cancelAlarm()
    }

    /// Waits like ``finished(within:)``, without a limit. The current task can be cancelled.
    func untilQuiet() async {
        while !Task.isCancelled, await attemptsEnded() { await LaunchContext.graceAfterResult() }
    }
}

/// Runs a call that an app awaits. The process does not end before the app's code continues.
///
/// The call is counted as ended on the caller's actor. On the main actor, no other code runs between the end of the count and the
/// app's code.
nonisolated(nonsending) package func awaited<Value>(_ call: () async throws -> Value) async throws -> Value {
    let calls = ActiveTransfers.current.ordinary
    calls.enter()
    defer { calls.leave() }
    return try await call()
}
