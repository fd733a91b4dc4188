import ProcessSupport
import BackgroundLedger
import BackgroundRuntime
import BackgroundScheduling
import Dispatch
import Foundation
import Synchronization

/// The continued-processing tasks of this process: started and stopped by the agent's word in the ledger, run here.
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
        /// Something that this process asked for waits or runs.
        var isBusy = false
        var isTicking = false
        var keeper = AgentKeeper()
    }

    /// Fractions are written down as parts of this many.
    private static let scale: Int64 = 1_000_000

    private let state = Mutex(State())
    private let queue = DispatchQueue(label: "continued-processing")
    private let retry = ReadRetry()

    private init() {}

    /// Hears of every commit from now on. Once per process.
    func listen() throws(StoreError) {
        guard state.withLock({ $0.token == nil }) else { return }
        let token = try AppRuntime.shared.onCommit { [queue] in queue.async { ContinuedTasks.shared.look() } }
        state.withLock { $0.token = token }
    }

    /// Something was asked for: from now on until its end, progress is looked at, and an agent is made sure of.
    func becomeBusy() {
        let isFirst = state.withLock { state in
            defer { (state.isBusy, state.isTicking) = (true, true) }
            return !state.isTicking
        }
        if isFirst { tickSoon() }
        // It may all be over already, and whoever looked at that saw nothing begin.
        queue.async { self.look() }
    }

    /// A handler came that was missing.
    func handlersChanged() {
        guard state.withLock({ $0.token != nil }) else { return }
        queue.async { self.look() }
    }

    /// Until everything that this process asked for has ended. Returns at once if it asked for nothing.
    func untilIdle() async {
        guard state.withLock({ $0.token != nil }) else { return }
        while true {
            do {
                let isSettled = try await AppRuntime.shared.wait { transaction in
                    try Self.isIdle(transaction)
                        ? try !transaction.liveLaunches().contains { $0.host == AppRuntime.shared.identity } : nil
                }
                // Its result is written down, and the agent that was to see it is gone: another one will.
                if !isSettled { try AppRuntime.shared.commit { _ in } }
                return
            } catch let error as StoreError where error.isPassing {
                continue
            } catch {
                return
            }
        }
    }

    /// Nothing that this process asked for waits or runs. With a result it is over, also while no agent is there to say so.
    private static func isIdle(_ transaction: LedgerTransaction) throws -> Bool {
        let isWaiting = try transaction.requests(of: .continuedProcessing).contains { $0.host == AppRuntime.shared.identity }
        let isRunning = try transaction.liveLaunches().contains { $0.host == AppRuntime.shared.identity && $0.result == nil }
        return !isWaiting && !isRunning
    }

    /// The same for a `main.swift`, whose main queue must go on: a handler may run there.
    func runUntilIdle() {
        let isBusy = !OutstandingCalls.shared.isEmpty || !Beginnings.current.isEmpty
        guard state.withLock({ $0.token != nil }) || isBusy else { return }
        nonisolated(unsafe) var isIdle = false
        Task.detached {
            await BackgroundLaunch.settled()
            DispatchQueue.main.async { isIdle = true }
        }
        while !isIdle { _ = RunLoop.main.run(mode: .default, before: .distantFuture) }
    }

    // MARK: On the queue

    private func look() {
        let seen = try? AppRuntime.shared.ledger().readAfterRing { transaction in
            (launches: try transaction.liveLaunches(), isIdle: try Self.isIdle(transaction))
        }
        guard let (launches, isIdle) = seen else {
            retry.failed { self.queue.async { self.look() } }
            return
        }
        retry.succeeded()
        state.withLock { $0.isBusy = !isIdle }
        for launch in launches where launch.kind == .continuedProcessing && launch.host == AppRuntime.shared.identity {
            let id = launch.id!
            let isKnown = state.withLock { $0.running[id] != nil || $0.ended.contains(id) }
            // Without a handler yet it waits: registering late is allowed here.
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
            // Under the lock: a handler that is done at once finds its entry.
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
        // A thread of its own: a handler that blocks must not hold back the others' progress.
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

    /// `Progress` tells nobody of its changes here (no key-value observing), and children change only its fraction: so it
    /// is looked at, while something waits or runs. An agent that died is replaced: nobody else would start one.
    private func tickSoon() {
        queue.asyncAfter(deadline: .now() + 0.5) { [self] in
            sample()
            // Of the ledger's word only: a handler that the agent gave up on needs no agent any more.
            let (goesOn, hasAgent) = state.withLock { state in
                state.isTicking = state.isBusy
                return (state.isTicking, state.isTicking ? state.keeper.tick() : true)
            }
            if !hasAgent { giveUpWaiting() }
            if goesOn { tickSoon() }
        }
    }

    /// No agent stays: what runs goes on and ends with its result; what waits for room would wait for ever.
    private func giveUpWaiting() {
        let ledger = try? AppRuntime.shared.ledger()
        let waiting = try? ledger?.read { transaction in
            try transaction.requests(of: .continuedProcessing).filter { $0.host == AppRuntime.shared.identity }.map(\.identifier)
        }
        // Said first: once nothing waits, this process may end at any moment.
        for identifier in waiting ?? [] {
            StandardError.write("\(identifier) cannot begin: no agent stays\n")
        }
        DurableWrites.shared.commit("the end of what waited for room", startsAgent: false) { transaction in
            for identifier in waiting ?? [] { try transaction.deleteRequest(identifier) }
        }
        state.withLock { $0.keeper = AgentKeeper() }
    }

    /// Foundation's `Progress` has no lock here: a sample taken while it is written may be a step behind.
    private func sample() {
        let changed = state.withLock { state -> [(Int64, Double?)] in
            state.running.compactMap { id, running in
                let progress = running.task.progress
                let (units, fraction) = (progress.completedUnitCount, progress.fractionCompleted)
                guard units != running.seenUnits || fraction != running.seenFraction else { return nil }
                state.running[id]?.seenUnits = units
                state.running[id]?.seenFraction = fraction
                // Without a total it moves, but nobody knows how far it is.
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
