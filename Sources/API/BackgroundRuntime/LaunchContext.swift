import ProcessSupport
import BackgroundLedger
import BackgroundScheduling
import CLinux
import Foundation
import Synchronization

/// The launch for which the agent started this process. The object contains the reason for the launch, the warning before the
/// time limit, and the result.
///
/// ``current`` is `nil` in a process that a user or another program started.
package final class LaunchContext: Sendable {
    /// The environment variable that contains the launch's number.
    package static let variable = "BACKGROUND_LAUNCH"

    /// The launch to which the current work belongs. On a test host, several launches run in one process. If work is outside the
    /// launch's Swift tasks (a callback on a queue) and exactly one launch is running, the work belongs to this launch.
    package static var current: LaunchContext? {
        if let own { return own }
        if HostedCommand.current != nil { return nil }
        let runtime = AppRuntime.shared
        return runtime.isHosted ? runtime.part { HostedLaunches() }.only : ofThisProcess
    }

    /// On a test host, the number of the launch or command that this Swift task belongs to, or `nil` if this is not known.
    package static var currentNumber: Int64? { current?.id ?? HostedCommand.current?.number }

    /// On a test host, the launch that this Swift task belongs to.
    @TaskLocal package static var own: LaunchContext?

    /// The launch of this process, read once from the environment variable. Child processes of this process do not inherit the
    /// variable.
    private static let ofThisProcess: LaunchContext? = {
        guard let text = ProcessInfo.processInfo.environment[variable], let id = Int64(text) else { return nil }
        unsetenv(variable)
        return LaunchContext(id: id)
    }()

    private struct State {
        var stop: StopReason?
        var handlers: [@Sendable (StopReason) -> Void] = []
        var isFinished = false
        /// The row of the launch in the ledger, as read when the launch began.
        var record: LaunchRecord?
        var failure: String?
        /// The text about the result of the launch, which the history shows.
        var summary: String?
        /// `true` if the handlers have returned and the launch waits only for the delegates. The launch then acknowledges events
        /// even after the time limit, because no handler still works with the events.
        var waitsForListeners = false
        /// The delegates that receive the events of this launch.
        var listeners: [Listener] = []
        /// `true` if the app works on queues or in unstructured tasks, which a test host cannot observe.
        var hasUnseenWork = false
        /// `true` if the process calls ``graceAfterResult()`` before it exits.
        var hasGrace = false
        /// Some work may continue after the result of the launch. Each closure returns when one such work is complete.
        var stays: [@Sendable () async -> Void] = []
    }

    package let id: Int64
    private let state = Mutex(State())
    private let acknowledgements = LaunchAcknowledgements()
    /// The gate that prevents the process of this launch from exiting during a delivery to the app.
    package let deliveries = DeliveryGate()
    /// Counts the work that the app has begun in this launch and that is not stored in the ledger yet.
    let beginnings = WorkCounter()
    package let begun = ActiveTransfers()

    /// The values with which a test host simulates the process of a launch.
    private struct Role: Sendable {
        let runtime: AppRuntime
        let identity: ProcessIdentity
        let leave: @Sendable (Int32) -> Void
    }

    private let role: Role?
    private let terminationActions = Mutex<[@Sendable () -> Void]>([])
    private let dead = Mutex(false)

    private init(id: Int64) {
        self.id = id
        role = nil
    }

    /// Creates a launch on a test host.
    ///
    /// - Parameter leave: a closure that is called instead of `exit`.
    package init(
        id: Int64, runtime: AppRuntime, identity: ProcessIdentity, leave: @escaping @Sendable (Int32) -> Void
    ) {
        self.id = id
        role = Role(runtime: runtime, identity: identity, leave: leave)
        runtime.part { HostedLaunches() }.add(self)
    }

    var runtime: AppRuntime? { role?.runtime }

    /// The identity of this launch's process.
    package var identity: ProcessIdentity { role?.identity ?? .current }

    /// On a test host, `true` if the process was killed. Later work of the launch has no effect.
    package var isDead: Bool { dead.withLock { $0 } }

    /// On a test host, registers an action that is called when the process is killed. The action must end all code that waits for
    /// work of this process.
    package func onTermination(_ action: @escaping @Sendable () -> Void) { terminationActions.withLock { $0.append(action) } }

    /// On a test host, simulates a SIGKILL of the process.
    package func die() {
        dead.withLock { $0 = true }
        let terminationActions = terminationActions.withLock { terminationActions in
            defer { terminationActions = [] }
            return terminationActions
        }
        for action in terminationActions { action() }
        runtime?.part { HostedLaunches() }.remove(self)
    }

    /// Ends the process. On a test host, only the simulated process ends.
    func endProcess(_ code: Int32) {
        guard let role else { ProcessExit.end(code) }
        role.runtime.part { HostedLaunches() }.remove(self)
        if !isDead { role.leave(code) }
    }

    /// Returns the launch's row in the ledger, and begins to wait for the warning signal (SIGTERM). Call this method once, before
    /// any work.
    ///
    /// The agent started this process with the signal SIGTERM blocked. An early signal therefore stays pending until the thread
    /// that this method creates receives it.
    package func begin() throws -> LaunchRecord {
        let ledger = try AppRuntime.shared.ledger()
        let record = try ledger.write { transaction -> LaunchRecord? in
            try transaction.launchDidBegin(id, identity)
            return try transaction.launch(id)
        }
        guard let record, record.endedAt == nil else { throw LaunchIsOver() }
        state.withLock { $0.record = record }
        // One of the events may crash each process that receives it. The other events are therefore acknowledged immediately
        // after their delivery, so that they are not delivered again in the next launch.
        if record.kind == .urlSession, hasFailedTwice { _ = acknowledgements.stopDeferring() }
        guard role == nil else { return record }
        let thread = Thread { [self] in
            var signals = sigset_t()
            sigemptyset(&signals)
            sigaddset(&signals, SIGTERM)
            var signal: Int32 = 0
            while sigwait(&signals, &signal) == 0 { handleStopWarning() }
        }
        thread.name = "warning"
        thread.start()
        return record
    }

    package struct LaunchIsOver: Error {}

    /// The number of consecutive unsuccessful launches for the same events before this launch.
    package var repetitions: Int { state.withLock { ($0.record?.generation ?? 1) - 1 } }

    /// `true` if at least two consecutive launches for the same events did not succeed.
    package var hasFailedTwice: Bool { repetitions > 1 }

    /// Returns whether the launch is for the events of this background session.
    package func isForSession(_ identifier: String) -> Bool {
        // The record is read from the ledger if necessary, because a session may be created before the launch begins.
        let record = state.withLock { $0.record } ?? AppRuntime.shared.read("launch \(id)") { try $0.launch(id) } ?? nil
        return record.map { $0.kind == .urlSession && $0.identifier == identifier } ?? false
    }

    /// Handles the warning signal. The agent commits the reason to the ledger before the agent sends the signal. If the ledger
    /// contains no reason, another process sent the signal, for example at a logout, or the agent cannot write to the ledger.
    package func handleStopWarning() {
        // The time limit of this read is short, because the launch has little time to stop.
        let recorded =
            AppRuntime.shared.read("the reason to stop launch \(id)", for: .seconds(1)) { try $0.launch(id)?.stopReason } ?? nil
        let reason = recorded ?? .quit
        let handlers = state.withLock { state -> [@Sendable (StopReason) -> Void] in
            guard state.stop == nil else { return [] }
            state.stop = reason
            defer { state.handlers = [] }
            return state.handlers
        }
        for handler in handlers { handler(reason) }
    }

    /// The reason why the launch must end, or `nil` before the warning.
    package var stopReason: StopReason? { state.withLock { $0.stop } }

    /// Registers a handler that is called once when the process receives the warning, before the process is killed. The handler
    /// runs on another thread than the work of the launch. If the warning has already come, the handler is called immediately.
    package func onWarning(_ handler: @escaping @Sendable (StopReason) -> Void) {
        let already = state.withLock { state -> StopReason? in
            if state.stop == nil { state.handlers.append(handler) }
            return state.stop
        }
        if let already { handler(already) }
    }

    /// Acknowledges a delivered event together with the result of the launch. If the process is killed before the launch has a
    /// result, the next launch delivers the event again.
    package func acknowledgeAtEnd(_ acknowledgement: @escaping @Sendable (LedgerTransaction) throws -> Void) {
        guard acknowledgements.add(acknowledgement) else { return }
        DurableWrites.shared.commit("the delivery of results in launch \(id)", acknowledgement)
    }

    /// Acknowledges the events that were already delivered, and acknowledges each later event immediately after its delivery.
    /// Call this method if the app began a background transfer in this launch. If the events were not acknowledged, they could be
    /// delivered again, and the app would begin the transfer again. An upload with a submission key does not need this call. Also
    /// call this method if the time limit was reached before all events were delivered.
    ///
    /// - Parameter recorded: the number of deliveries that ``recordDeliveries(in:)`` recorded.
    package func acknowledgeAtOnce(recorded: Int = 0) {
        let earlier = acknowledgements.stopDeferring().dropFirst(recorded)
        if earlier.isEmpty { return }
        DurableWrites.shared.commit("the delivery of results in launch \(id)") {
            for acknowledge in earlier { try acknowledge($0) }
        }
    }

    /// Acknowledges, in the given transaction, the delivered events whose acknowledgements wait for the result of the launch.
    ///
    /// - Returns: the number of these deliveries.
    package func recordDeliveries(in transaction: LedgerTransaction) throws -> Int {
        let waiting = acknowledgements.waiting
        for acknowledge in waiting { try acknowledge(transaction) }
        return waiting.count
    }

    /// Pauses or resumes the time limit of the launch, because the user is choosing a file. The pause lasts at most 10 minutes.
    package func setPersonChoosing(_ isChoosing: Bool) {
        DurableWrites.shared.commit("the pause of the time limit for the user's choice", startsAgent: false) { [id] in
            try $0.setPersonChoosing(isChoosing, launch: id)
        }
    }

    /// Records that a registered handler runs on a queue of the app. A test host cannot observe work that the handler starts on
    /// this queue.
    package func recordUnseenWork() { state.withLock { $0.hasUnseenWork = true } }

    /// On a test host, `true` if the process of this launch has not ended.
    var isLiving: Bool { runtime?.part { HostedLaunches() }.contains(self) ?? false }

    /// The identifiers of the sessions that have a delegate in this launch. The set is empty if the launch has a result, or if a
    /// test host cannot observe all work of the launch.
    package var awaitedSessions: Set<String> {
        state.withLock { $0.hasUnseenWork || $0.isFinished ? [] : Set($0.listeners.map(\.session)) }
    }

    package func add(_ listener: Listener) { state.withLock { $0.listeners.append(listener) } }

    /// The delegates of the session whose events this launch delivers.
    private var listenersOfLaunch: [Listener] {
        state.withLock { $0.listeners }.filter { isForSession($0.session) }
    }

    /// Waits until the delegates have received the events of this launch, because handlers often return before that.
    func waitForListeners() async {
        let listeners = listenersOfLaunch
        guard !listeners.isEmpty else { return }
        let isInTime = state.withLock { state in
            if state.stop == nil { state.waitsForListeners = true }
            return state.stop == nil
        }
        guard isInTime else { return }
        for listener in listeners { await listener.waitForAllEvents() }
    }

    /// Stops the deliveries at the time limit of the launch. Each delegate finishes its current call.
    ///
    /// If a delegate has not received all events, the received events are acknowledged now, and the next launch delivers the
    /// other events. Without these acknowledgements, a launch with too many events for the time limit would receive the same
    /// events again and again. If the delegates have received all events but a handler is still working, nothing is acknowledged,
    /// and the next launch delivers the events again.
    func endDeliveries() {
        let listeners = listenersOfLaunch
        guard state.withLock({ $0.waitsForListeners }) || listeners.contains(where: { !$0.hasReceivedAll() }) else { return }
        deliveries.close { for listener in listeners { listener.skipRemainingEvents() } }
        acknowledgeAtOnce()
    }

    /// Marks the launch as failed, independent of the handler's result. The history shows the reason.
    package func fail(_ reason: String) { state.withLock { $0.failure = $0.failure ?? reason } }

    /// Sets the text that the history shows about the result of the launch. Each call replaces the text.
    package func describe(_ summary: String) { state.withLock { $0.summary = summary } }

    /// Returns the responses to a notification that were not delivered. If the ledger cannot be read, the launch fails. If the
    /// launch did not fail, the responses would be acknowledged although the app did not receive them.
    package static func undeliveredResponses(to notification: String) -> [NotificationResponseRecord] {
        do {
            return try AppRuntime.shared.ledger().read { try $0.undeliveredResponses() }.filter {
                $0.notification == notification
            }
        } catch {
            current?.fail("the record of the pressed button cannot be read: \(error)")
            return []
        }
    }

    /// Ends the launch with a result: stores the result in the ledger and ends the process. Later calls have no effect.
    package func finish(success: Bool, detail: String? = nil) {
        let isFirst = state.withLock { state -> Bool in
            defer { state.isFinished = true }
            return !state.isFinished
        }
        guard isFirst, !isDead else { return }
        let (failure, summary, waitsForListeners) = state.withLock { ($0.failure, $0.summary, $0.waitsForListeners) }
        let result: LaunchOutcome = stopReason != nil ? .expired : success && failure == nil ? .completed : .failed
        let detail = detail ?? failure ?? summary
        let counts = result == .completed || result == .expired && waitsForListeners
        let acknowledgements = acknowledgements.close(counting: counts)
        KillPoint.reach(.beforeResult)
        do {
            // The handler's writes that failed before are committed first. If these writes fail again, this launch gets no result
            // and is retried.
            if let error = DurableWrites.shared.flush() { throw error }
            AppRuntime.shared.writeDefaults()
            try AppRuntime.shared.ledger().write { transaction in
                // The delivered events are acknowledged only if the handler completed its work. After an interruption, the next
                // launch delivers the events again.
                for acknowledge in acknowledgements { try acknowledge(transaction) }
                try transaction.setResult(result, detail: detail, ofLaunch: id)
            }
        } catch {
            StandardError.write("the result of launch \(id) could not be recorded: \(error)\n")
            return endProcess(74)
        }
        KillPoint.reach(.afterResult)
        exitWhenIdle(mayContinue: result == .completed)
    }

    /// Ends the launch without a result, so that the launch is retried. Later calls, and calls after a result, have no effect.
    package func abandon(_ reason: String) {
        let isFirst = state.withLock { state -> Bool in
            defer { state.isFinished = true }
            return !state.isFinished
        }
        guard isFirst, !isDead else { return }
        AppRuntime.shared.report("launch \(id) is abandoned: \(reason)")
        do {
            try AppRuntime.shared.ledger().write { try $0.handle(.abandoned(because: reason), launch: id) }
        } catch {
            // If the reason cannot be written, the launch is still retried, but the history does not show the reason.
            AppRuntime.shared.report("\(error)")
        }
        endProcess(78)
    }

    // MARK: After the result

    /// Adds work that is allowed to continue after the result. The process continues until this work is complete, or until the
    /// launch reaches its time limit.
    package func stay(until isOver: @escaping @Sendable () async -> Void) { state.withLock { $0.stays.append(isOver) } }

    /// Makes the process wait for ``graceAfterResult()`` once, after all other work that is allowed to continue.
    package func stayForGrace() { state.withLock { $0.hasGrace = true } }

    private func exitWhenIdle(mayContinue: Bool) {
        let (stays, hasGrace, isWarned) = state.withLock { ($0.stays, $0.hasGrace, $0.stop != nil) }
        guard !stays.isEmpty || hasGrace || mayContinue && !begun.isEmpty else { return exitAfterPendingWork() }
        let (quiet, isQuiet) = AsyncStream.makeStream(of: Void.self)
        // If the warning came before the result, the launch may continue until the agent kills the process at the end of the
        // grace time.
        if !isWarned { onWarning { _ in isQuiet.finish() } }
        onTermination { isQuiet.finish() }
        // On a test host, virtual time does not pass while a Swift task of this executor runs.
        let executor = AppRuntime.shared.executor
        Task(executorPreference: executor) { [self] in
            let work = Task(executorPreference: executor) { [self] in
                for stay in stays { await stay() }
                if hasGrace { await Self.graceAfterResult() }
                if mayContinue { await continueForAttempts { isQuiet.finish() } }
                isQuiet.finish()
            }
            for await _ in quiet {}
            work.cancel()
            exitAfterPendingWork()
        }
    }

    /// Waits until no transfer that the app began in this launch is in progress.
    ///
    /// - Parameter timeIsUp: a closure that is called if the wait takes longer than ``AgentSettings/continuation``.
    private func continueForAttempts(_ timeIsUp: @escaping @Sendable () -> Void) async {
        guard !begun.isEmpty else { return }
        let continuation = AppRuntime.shared.continuation
        guard continuation > 0 else { return }
        let cancelAlarm = AppRuntime.shared.alarm(after: continuation, timeIsUp)
        defer { cancelAlarm() }
        await begun.untilQuiet()
    }

    /// Ends the process after all deliveries and writes. A request that the app submits after the result is also stored. If a
    /// delegate never returns, the agent kills the process at the time limit.
    private func exitAfterPendingWork() {
        guard !isDead else { return endProcess(0) }
        AppRuntime.whenNothingIsLost(deliveries, beginnings) { [self] in endProcess(0) }
    }
}
