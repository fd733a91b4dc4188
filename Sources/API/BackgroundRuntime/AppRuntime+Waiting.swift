import BackgroundLedger
import Foundation
import ProcessSupport

// The clock of the app, and the timers that use it.
extension AppRuntime {
    /// The name of the command that a user types.
    package static var programName: String {
        // Outside a test, the executable's name is used, because the name may be needed before the manifest is set.
        (isTestHosted ? shared.testHost?.manifest.appIdentifier : nil) ?? AppManifest.executableURL.lastPathComponent
    }

    /// The executor that runs the app's Swift tasks on a test host. With this executor, the test host detects that all tasks are
    /// waiting. `nil` if no test host is used.
    package var executor: (any TaskExecutor)? { testHost?.executor }

    /// Converts a date that the app computed to the clock of this process. The app's clock and the clock of this process differ
    /// only on a test host.
    package func date(fromApp date: Date) -> Date {
        guard let testHost, let appNow = testHost.appNow else { return date }
        return date.moved(from: appNow(), to: testHost.now())
    }

    /// Converts a date on the clock of this process to the app's clock.
    package func date(forApp date: Date) -> Date {
        guard let testHost, let appNow = testHost.appNow else { return date }
        return date.moved(from: testHost.now(), to: appNow())
    }

    /// Calls an action once, after the given number of seconds. On a test host, the seconds are seconds of virtual time.
    ///
    /// - Parameter isIdle: `true` if the calling launch does nothing until the alarm.
    /// - Returns: A closure that cancels the alarm.
    package func alarm(
        after seconds: Double, isIdle: Bool = false, _ action: @escaping @Sendable () -> Void
    ) -> @Sendable () -> Void {
        if let testHost { return testHost.alarm(seconds, isIdle, action) }
        let sleeper = Task {
            try await Task.sleep(for: .seconds(seconds))
            action()
        }
        return { sleeper.cancel() }
    }

    /// Waits for the given number of seconds (virtual time on a test host), or until the Swift task is cancelled.
    ///
    /// - Parameter isIdle: `true` if the calling launch does nothing during the pause. On a test host, virtual time then passes.
    package func pause(for seconds: Double, isIdle: Bool = false) async {
        let (end, alarm) = AsyncStream.makeStream(of: Void.self)
        let cancelAlarm = self.alarm(after: seconds, isIdle: isIdle) { alarm.finish() }
        for await _ in end {}
        cancelAlarm()
    }

    /// The time since an arbitrary fixed moment, on the same clock as ``alarm(after:_:)``. Use it to measure durations.
    package var elapsed: Duration { testHost.map { .seconds($0.elapsed()) } ?? Self.start.duration(to: .now) }
    private static let start = ContinuousClock.now
}

// The methods that wait for a result of the agent.
extension AppRuntime {
    /// Waits like ``waitForAgent(until:)``. If agents are forbidden, the method waits without an agent and without a time limit.
    package func waitWithAgent<Value: Sendable>(
        until condition: @escaping @Sendable (LedgerTransaction) throws -> Value?
    ) async throws -> Value {
        if isHosted || AgentStarter(directories: directories).isForbidden { return try await wait(until: condition) }
        return try await waitForAgent(until: condition)
    }

    /// Waits like ``wait(until:)`` for a result of the agent. If the agent is killed during the wait, another agent is started.
    ///
    /// - Throws: ``NoAgent`` if no agent can be kept running, and the errors of ``wait(until:)``.
    package func waitForAgent<Value: Sendable>(
        looked: @escaping @Sendable () -> Void = {}, until condition: @escaping @Sendable (LedgerTransaction) throws -> Value?
    ) async throws -> Value {
        if isHosted { return try await wait(looked: looked, until: condition) }
        // If this process uses the ledger in exclusive mode, the agent cannot open the ledger while this process runs. The wait
        // would therefore never end.
        if try ledger().isAlone { throw StoreError.diskFull(path: directories.ledger.path) }
        return try await withThrowingTaskGroup(of: Value.self) { group in
            group.addTask { try await self.wait(looked: looked, until: condition) }
            group.addTask {
                var keeper = AgentKeeper()
                while keeper.tick() { try await Task.sleep(for: .seconds(1)) }
                throw NoAgent(log: AgentStarter(directories: self.directories).logPlace)
            }
            defer { group.cancelAll() }
            guard let value = try await group.next() else { throw CancellationError() }
            return value
        }
    }
}

// The methods that end the process.
extension AppRuntime {
    /// Ends a process that a user started, when all work of the process is stored.
    package static func exitAfterPendingWork() {
        whenNothingIsLost(.ofThisProcess, UnsavedWork.current) { ProcessExit.end(0) }
    }

    /// Calls an action when no delivery to the app is running, and all work that the app began is stored.
    static func whenNothingIsLost(
        _ deliveries: DeliveryGate, _ beginnings: WorkCounter, _ action: @escaping @Sendable () -> Void
    ) {
        deliveries.close {
            beginnings.whenNone {
                if let error = DurableWrites.shared.flush() { AppRuntime.shared.report("some changes were not stored: \(error)") }
                // The process does not exit during a commit of another thread.
                (try? AppRuntime.shared.ledger())?.waitForWrites()
                action()
            }
        }
    }
}

// The methods that wait for a change of the ledger.
extension AppRuntime {
    /// If the ledger cannot be read for longer than this time, a wait ends with an error. The ledger cannot be read, for example,
    /// while a signal has stopped another process within a transaction.
    private static let longestTrouble: Duration = .seconds(60)

    /// Waits until `condition` returns a value. `condition` is called once at the start and again after every commit.
    ///
    /// - Parameters:
    ///   - looked: called after each read, when this process has unlocked the ledger. Use this closure for slow work.
    /// - Throws: the error of `condition`, the error of a ledger that could not be read for a minute, or `CancellationError` when
    ///   the awaiting task is cancelled.
    package func wait<Value: Sendable>(
        looked: @escaping @Sendable () -> Void = {}, until condition: @escaping @Sendable (LedgerTransaction) throws -> Value?
    ) async throws -> Value {
        let ledger = try ledger()
        let (rings, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let token = try onCommit { continuation.yield() }
        defer { token.cancel() }
        // This element of the stream starts the first read. `onCommit` is called before the first read, so that no commit is
        // missed.
        continuation.yield()
        guard let testHost else {
            let retry = ReadRetry()
            var pace = LedgerReadPace()
            for await _ in rings {
                try await pace.wait()
                do throws(StoreError) {
                    let value = try ledger.readAfterRing(condition)
                    looked()
                    if let value { return value }
                    retry.succeeded()
                } catch {
                    // Another file has replaced the ledger, so this process will not receive change notifications any more.
                    if case .replaced = error { throw error }
                    guard error.isPassing, retry.failed(again: { continuation.yield() }) < Self.longestTrouble else {
                        throw error
                    }
                }
            }
            throw CancellationError()
        }
        let wait = waits.begin(launch: LaunchContext.currentNumber)
        defer {
            waits.end(wait)
            testHost.waitsChanged()
        }
        return try await withTaskCancellationHandler {
            for await _ in rings {
                let commits = ledger.commitCount
                let value = try ledger.readAfterRing(condition)
                looked()
                if let value { return value }
                waits.looked(wait, at: commits)
                testHost.waitsChanged()
            }
            throw CancellationError()
        } onCancel: {
            // The cancelled task continues later, on its own thread. The wait is marked as running now, so that virtual time does
            // not pass before the task continues.
            waits.wake(wait)
            testHost.waitsChanged()
        }
    }
}
