import ProcessSupport
import BackgroundLedger
import BackgroundRuntime
import BackgroundScheduling
import Dispatch
import Foundation
import Synchronization

/// The continued-processing tasks of this process. The tasks run in this process. To start or stop a task, the agent writes to
/// the ledger, and this process reads the ledger.
final class ContinuedTasks: Sendable {
    static var shared: ContinuedTasks { AppRuntime.shared.part { ContinuedTasks() } }

    private struct Running {
        let task: BGContinuedProcessingTask
        let work: Task<Void, Never>
        var isStopped = false
        var seenUnits: Int64 = 0
        var seenFraction = 0.0
    }

    private struct State {
        var token: DatabaseWatch.Token?
        var running: [Int64: Running] = [:]
        var ended: Set<Int64> = []
        /// `true` while a request or a task of this process is waiting or running.
        var isBusy = false
        var isTicking = false
        var keeper = AgentKeeper()
    }

    /// The ledger stores a progress as two integers, and this number is the total.
    private static let scale: Int64 = 1_000_000

    private let state = Mutex(State())
    private let queue = DispatchQueue(label: "continued-processing")
    private let retry = ReadRetry()

    private init() {}

    /// Starts to receive change notifications of the ledger. Later calls in this process have no effect.
    func listen() throws(StoreError) {
        guard state.withLock({ $0.token == nil }) else { return }
        let token = try AppRuntime.shared.onCommit { [queue] in queue.async { ContinuedTasks.shared.update() } }
        state.withLock { $0.token = token }
    }

    /// Starts to read the progress at regular intervals and to keep an agent running, until all continued processing that this
    /// process requested has ended.
    func becomeBusy() {
        let isFirst = state.withLock { state in
            defer { (state.isBusy, state.isTicking) = (true, true) }
            return !state.isTicking
        }
        if isFirst { tickSoon() }
        // The ledger is read again, because the task may have ended before `isBusy` was set.
        queue.async { self.update() }
    }

    /// Starts launches that waited for a handler. Call this method when the app has registered a handler.
    func handlersChanged() {
        guard state.withLock({ $0.token != nil }) else { return }
        queue.async { self.update() }
    }

    /// Waits until all continued processing that this process requested has ended. If this process requested no continued
    /// processing, the method returns immediately.
    func untilIdle() async {
        guard state.withLock({ $0.token != nil }) else { return }
        while true {
            do {
                let isSettled = try await AppRuntime.shared.wait { transaction in
                    try Self.isIdle(transaction)
                        ? try !transaction.liveLaunches().contains { $0.host == AppRuntime.shared.identity } : nil
                }
                // The ledger contains the result of a launch, but the agent has exited before it processed the result. The empty
                // commit starts another agent.
                if !isSettled { try AppRuntime.shared.commit { _ in } }
                return
            } catch let error as StoreError where error.isPassing {
                continue
            } catch {
                return
            }
        }
    }

    /// Returns `true` if all continued processing that this process requested has ended. A launch with a result counts as ended,
    /// even if no agent has processed the result yet.
    private static func isIdle(_ transaction: LedgerTransaction) throws -> Bool {
        let isWaiting = try transaction.requests(of: .continuedProcessing).contains { $0.host == AppRuntime.shared.identity }
        let isRunning = try transaction.liveLaunches().contains { $0.host == AppRuntime.shared.identity && $0.result == nil }
        return !isWaiting && !isRunning
    }

    /// Waits, in the code of a `main.swift` file, until the process has no work any more. The main queue continues to run during
    /// the call, because a handler may use the main queue.
    func runUntilIdle() {
        let isBusy = !OutstandingCalls.shared.isEmpty || !UnsavedWork.current.isEmpty
        guard state.withLock({ $0.token != nil }) || isBusy else { return }
        nonisolated(unsafe) var isIdle = false
        Task.detached {
            await BackgroundLaunch.settled()
            DispatchQueue.main.async { isIdle = true }
        }
        while !isIdle { _ = RunLoop.main.run(mode: .default, before: .distantFuture) }
    }

    // MARK: On the queue

    private func update() {
        let seen = try? AppRuntime.shared.ledger().readAfterRing { transaction in
            (launches: try transaction.liveLaunches(), isIdle: try Self.isIdle(transaction))
        }
        guard let (launches, isIdle) = seen else {
            retry.failed { self.queue.async { self.update() } }
            return
        }
        retry.succeeded()
        state.withLock { $0.isBusy = !isIdle }
        for launch in launches where launch.kind == .continuedProcessing && launch.host == AppRuntime.shared.identity {
            let id = launch.id!
            let isKnown = state.withLock { $0.running[id] != nil || $0.ended.contains(id) }
            // If the app has no handler for the launch, the launch waits, because the app can register a handler for continued
            // processing later.
            if !isKnown, TaskHandlers.shared.canRun(launch) { start(launch) }
            if launch.stopReason != nil { stop(id) }
        }
    }

    private func start(_ launch: LaunchRecord) {
        let id = launch.id!
        let (completions, completed) = AsyncStream.makeStream(of: Bool.self, bufferingPolicy: .bufferingOldest(1))
        let task = BGContinuedProcessingTask(
            launch,
            update: { title, subtitle in
                DurableWrites.shared.commit("the title of \(launch.identifier)", startsAgent: false) {
                    try $0.setTitle(title, subtitle: subtitle, launch: id)
                }
            },
            complete: { completed.yield($0) })
        state.withLock { state in
            // The lock is held until `running` contains the task. The handler may end immediately, and then `finish` needs the
            // entry of this task.
            let work = Task {
                let success = await TaskHandlers.shared.runContinued(launch, task, completions)
                self.finish(id, success)
            }
            state.running[id] = Running(task: task, work: work)
        }
    }

    private func stop(_ id: Int64) {
        let stopped = state.withLock { state -> Running? in
            guard var running = state.running[id], !running.isStopped else { return nil }
            running.isStopped = true
            state.running[id] = running
            return running
        }
        guard let stopped else { return }
        stopped.work.cancel()
        // The handler is called on a separate thread, because a handler that blocks must not delay the progress of other tasks.
        Thread.detachNewThread { stopped.task.expire() }
    }

    private func finish(_ id: Int64, _ success: Bool) {
        sample()
        let stopped = state.withLock { state -> Bool in
            state.ended.insert(id)
            return state.running.removeValue(forKey: id)?.isStopped ?? false
        }
        let result: LaunchOutcome = stopped ? .expired : success ? .completed : .failed
        DurableWrites.shared.commit("the result of \(id)") { try $0.setResult(result, detail: nil, ofLaunch: id) }
    }

    // MARK: Progress

    /// Reads the progress at regular intervals while continued processing of this process waits or runs. On Linux, `Progress`
    /// does not report changes (key-value observing does not exist), and child objects change only the fraction of the parent. If
    /// the agent was killed, this method starts another agent, because no other process would start an agent.
    private func tickSoon() {
        queue.asyncAfter(deadline: .now() + 0.5) { [self] in
            sample()
            // An agent is necessary only for launches that the ledger contains as running. If the agent has already ended a
            // launch, its handler may still run, but needs no agent.
            let (shouldContinue, hasAgent) = state.withLock { state in
                state.isTicking = state.isBusy
                return (state.isTicking, state.isTicking ? state.keeper.tick() : true)
            }
            if !hasAgent { removeWaitingRequests() }
            if shouldContinue { tickSoon() }
        }
    }

    /// Removes the requests of this process that wait for another task to end. Call this method if each started agent exited,
    /// because no agent would start these requests. Running tasks continue to their result.
    private func removeWaitingRequests() {
        let ledger = try? AppRuntime.shared.ledger()
        let waiting = try? ledger?.read { transaction in
            try transaction.requests(of: .continuedProcessing).filter { $0.host == AppRuntime.shared.identity }.map(\.identifier)
        }
        // The message is printed before the requests are removed, because this process may exit as soon as no request waits.
        for identifier in waiting ?? [] {
            StandardError.write("\(identifier) cannot begin, because no agent keeps running\n")
        }
        DurableWrites.shared.commit("the removal of waiting continued-processing requests", startsAgent: false) { transaction in
            for identifier in waiting ?? [] { try transaction.deleteRequest(identifier) }
        }
        state.withLock { $0.keeper = AgentKeeper() }
    }

    /// Writes each changed progress to the ledger. On Linux, Foundation's `Progress` has no lock. If the app changes the progress
    /// during the read, the value that is read may be the previous value.
    private func sample() {
        let changed = state.withLock { state -> [(Int64, Double?)] in
            state.running.compactMap { id, running in
                let progress = running.task.progress
                let (units, fraction) = (progress.completedUnitCount, progress.fractionCompleted)
                guard units != running.seenUnits || fraction != running.seenFraction else { return nil }
                state.running[id]?.seenUnits = units
                state.running[id]?.seenFraction = fraction
                // If the progress has no total, the ledger records only that the task has made progress.
                guard progress.totalUnitCount > 0, fraction.isFinite else { return (id, nil) }
                return (id, min(max(fraction, 0), 1))
            }
        }
        guard !changed.isEmpty else { return }
        let now = AppRuntime.shared.now
        DurableWrites.shared.commit("progress", startsAgent: false) { transaction in
            for (id, fraction) in changed {
                try transaction.setProgress(
                    Int64((fraction ?? 0) * Double(Self.scale)), of: fraction == nil ? 0 : Self.scale, launch: id, now: now)
            }
        }
    }
}
