import BackgroundLedger
import Synchronization

/// The running transfers whose results this process passes to the app. The process does not exit while one of these transfers is
/// in progress, even if all other work is complete. A transfer that waits, for example for a network, is not in progress.
package final class ActiveTransfers: Sendable {
    /// The transfers of the launch that the current Swift task belongs to, or of this process if the task belongs to no launch.
    package static var current: ActiveTransfers { LaunchContext.current?.begun ?? AppRuntime.shared.part { ActiveTransfers() } }

    /// Counts the transfers that the app awaits, and the running tasks of ordinary sessions. A task is included until the app has
    /// received the task's result, except while the task is suspended.
    package let ordinary = WorkCounter()
    /// The transfers of background sessions whose results this process passes to the app.
    private let background = Mutex<Set<Int64>>([])

    package func insert(_ transfer: Int64) { background.withLock { _ = $0.insert(transfer) } }

    /// `true` if none of these transfers can be in progress.
    var isEmpty: Bool { ordinary.isEmpty && background.withLock { $0.isEmpty } }

    /// Waits until none of these transfers is in progress, and the app has received the results of the ended transfers.
    ///
    /// - Returns: `false` if no transfer was in progress when the method was called.
    func attemptsEnded() async -> Bool {
        let hasOrdinary = !ordinary.isEmpty
        await ordinary.finished()
        guard background.withLock({ !$0.isEmpty }) else { return hasOrdinary }
        let wasUnderWay = Mutex(false)
        // If the ledger cannot be read now, `wait` repeats the read later.
        _ = try? await AppRuntime.shared.wait { [self] transaction -> Bool? in
            guard try transaction.isUnderWay(background.withLock { $0 }) else { return true }
            wasUnderWay.withLock { $0 = true }
            return nil
        }
        return hasOrdinary || wasUnderWay.withLock { $0 }
    }

    /// Waits until none of these transfers is in progress. After the last result, the method also waits a short time, so that the
    /// app's code can begin another transfer.
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

    /// Waits like ``finished(within:)``, but without a time limit. A cancellation of the current Swift task ends the wait.
    func untilQuiet() async {
        while !Task.isCancelled, await attemptsEnded() { await LaunchContext.graceAfterResult() }
    }
}

/// Runs a call that an app awaits. The process does not exit before the app's code continues after the call.
///
/// The counter of running calls is decremented on the caller's actor. If the caller runs on the main actor, no other code of the
/// main actor runs between the decrement and the app's code.
nonisolated(nonsending) package func awaited<Value>(_ call: () async throws -> Value) async throws -> Value {
    let calls = ActiveTransfers.current.ordinary
    calls.enter()
    defer { calls.leave() }
    return try await call()
}
