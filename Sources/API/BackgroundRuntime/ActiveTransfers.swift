import BackgroundLedger
import Synchronization

/// The running transfers whose results this process delivers to the app. Even if its other work is complete, the process
/// continues while attempts at these transfers are running.
package final class ActiveTransfers: Sendable {
    /// The transfers of the launch that the current Swift task belongs to, or of this process if the task belongs to no launch.
    package static var current: ActiveTransfers { LaunchContext.current?.begun ?? AppRuntime.shared.part { ActiveTransfers() } }

    /// The number of awaited transfers, and of running tasks of ordinary sessions. A task counts until its end was delivered to
    /// the app, and does not count while the task is suspended.
    package let ordinary = WorkCounter()
    /// The transfers of background sessions whose ends this process delivers to the app.
    private let background = Mutex<Set<Int64>>([])

    package func insert(_ transfer: Int64) { background.withLock { _ = $0.insert(transfer) } }

    /// `false` if an attempt may be running.
    var isEmpty: Bool { ordinary.isEmpty && background.withLock { $0.isEmpty } }

    /// Waits until no attempt is running and all ends were delivered to the app.
    ///
    /// - Returns: `false` if no attempt was running at the call.
    func attemptsEnded() async -> Bool {
        let hasOrdinary = !ordinary.isEmpty
        await ordinary.finished()
        guard background.withLock({ !$0.isEmpty }) else { return hasOrdinary }
        let wasUnderWay = Mutex(false)
        // If the ledger cannot be read now, the read is repeated later.
        _ = try? await AppRuntime.shared.wait { [self] transaction -> Bool? in
            guard try transaction.isUnderWay(background.withLock { $0 }) else { return true }
            wasUnderWay.withLock { $0 = true }
            return nil
        }
        return hasOrdinary || wasUnderWay.withLock { $0 }
    }

    /// Waits until no attempt is running. After the last end, the method also waits a short time, so that the app's code can
    /// begin another transfer.
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

/// Runs a call that an app awaits. The process does not end before the app's code after the call continues.
///
/// The number of running calls is decreased on the caller's actor. On the main actor, no other code runs between this change and
/// the app's code.
nonisolated(nonsending) package func awaited<Value>(_ call: () async throws -> Value) async throws -> Value {
    let calls = ActiveTransfers.current.ordinary
    calls.enter()
    defer { calls.leave() }
    return try await call()
}
