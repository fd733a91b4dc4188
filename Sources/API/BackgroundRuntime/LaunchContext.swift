import ProcessSupport
import BackgroundLedger
import BackgroundScheduling
import CLinux
import Foundation
import Synchronization

/// Why this process was launched by the agent, when its time ends, and how it says that it is done.
///
/// `nil` in a process that a person or another program started.
package final class LaunchContext: Sendable {
    /// The environment variable that carries the launch's number.
    package static let variable = "BACKGROUND_LAUNCH"

    /// Of the work that asks. On a test host, where launches share a process, work that is no task of the launch's own (a callback
    /// on a queue) belongs to the one that lives, if it is one.
    package static var current: LaunchContext? {
        if let own { return own }
        if HostedCommand.current != nil { return nil }
        let runtime = AppRuntime.shared
        return runtime.isHosted ? runtime.part { HostedLaunches() }.only : ofThisProcess
    }

    /// On a test host: the process that this task is part of, a launch or a command. `nil` if that is not known.
    package static var currentNumber: Int64? { current?.id ?? HostedCommand.current?.number }

    /// On a test host: the launch that this task is a part of.
    @TaskLocal package static var own: LaunchContext?

    /// Read once; children of this process do not inherit it.
    private static let ofThisProcess: LaunchContext? = {
        guard let text = ProcessInfo.processInfo.environment[variable], let id = Int64(text) else { return nil }
        unsetenv(variable)
        return LaunchContext(id: id)
    }()

    private struct State {
        var stop: StopReason?
        var handlers: [@Sendable (StopReason) -> Void] = []
        var isFinished = false
        /// What the ledger said of it when it began.
        var record: LaunchRecord?
        var failure: String?
        /// What a delegate has heard counts also where the launch's time ran out: nobody in the app makes more of it.
        var countsWhatWasHeard = false
        /// Delegates that hear of what this launch is for.
        var listeners: [Listener] = []
        /// The app works on queues or in unstructured tasks, which a test host cannot observe.
        var hasUnseenWork = false
        /// What goes on when the result is known.
        var stays: [@Sendable () async -> Void] = []
    }

    package let id: Int64
    private let state = Mutex(State())
    private let acknowledgements = LaunchAcknowledgements()
    /// Who tells the app something in this launch.
    package let deliveries = DeliveryGate()
    /// What the app begins in this launch, until it is durable.
    let beginnings = WorkUnderWay()
    package let begun = BegunTransfers()

    /// On a test host: what takes the place of the process.
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

    /// A launch on a test host.
    ///
    /// - Parameter leave: takes the place of `exit`.
    package init(
        id: Int64, runtime: AppRuntime, identity: ProcessIdentity, leave: @escaping @Sendable (Int32) -> Void
    ) {
        self.id = id
        role = Role(runtime: runtime, identity: identity, leave: leave)
        runtime.part { HostedLaunches() }.add(self)
    }

    var runtime: AppRuntime? { role?.runtime }

    /// The process of this launch.
    package var identity: ProcessIdentity { role?.identity ?? .current }

    /// On a test host: killed; nothing that it still does counts.
    package var isDead: Bool { dead.withLock { $0 } }

    /// On a test host: called when it is killed, so that what waits for its work waits no longer.
    package func onTermination(_ action: @escaping @Sendable () -> Void) { terminationActions.withLock { $0.append(action) } }

    /// On a test host: SIGKILL.
    package func die() {
        dead.withLock { $0 = true }
        let terminationActions = terminationActions.withLock { terminationActions in
            defer { terminationActions = [] }
            return terminationActions
        }
        for action in terminationActions { action() }
        runtime?.part { HostedLaunches() }.remove(self)
    }

    /// The process ends; on a test host only what stands for it.
    func leave(_ code: Int32) {
        guard let role else { ProcessExit.leave(code) }
        role.runtime.part { HostedLaunches() }.remove(self)
        if !isDead { role.leave(code) }
    }

    /// What the ledger says of this launch, and from now on the warning is heard. Call once, before any work.
    ///
    /// The agent started this process with SIGTERM blocked: a warning that comes early waits for the thread made here.
    package func begin() throws -> LaunchRecord {
        let ledger = try AppRuntime.shared.ledger()
        let record = try ledger.write { transaction -> LaunchRecord? in
            try transaction.launchDidBegin(id, identity)
            return try transaction.launch(id)
        }
        guard let record, record.endedAt == nil else { throw LaunchIsOver() }
        state.withLock { $0.record = record }
        guard role == nil else { return record }
        let thread = Thread { [self] in
            var signals = sigset_t()
            sigemptyset(&signals)
            sigaddset(&signals, SIGTERM)
            var signal: Int32 = 0
            while sigwait(&signals, &signal) == 0 { heardWarning() }
        }
        thread.name = "warning"
        thread.start()
        return record
    }

    package struct LaunchIsOver: Error {}

    /// Whether it is for the events of this background session.
    package func isForSession(_ identifier: String) -> Bool {
        // A session may be made before the launch begins.
        let record = state.withLock { $0.record } ?? AppRuntime.shared.read("launch \(id)") { try $0.launch(id) } ?? nil
        return record.map { $0.kind == .urlSession && $0.identifier == identifier } ?? false
    }

    /// The reason was committed before the signal was sent; without one somebody else sent it (a logout, say), or the agent cannot write.
    package func heardWarning() {
        // The time to stop is short.
        let recorded = AppRuntime.shared.read("the reason to stop", for: .seconds(1)) { try $0.launch(id)?.stopReason } ?? nil
        let reason = recorded ?? .quit
        let handlers = state.withLock { state -> [@Sendable (StopReason) -> Void] in
            guard state.stop == nil else { return [] }
            state.stop = reason
            defer { state.handlers = [] }
            return state.handlers
        }
        for handler in handlers { handler(reason) }
    }

    /// The reason to stop, once warned.
    package var stopReason: StopReason? { state.withLock { $0.stop } }

    /// Called once, off the work's own thread, when the time is up; at once if it already is.
    package func onWarning(_ handler: @escaping @Sendable (StopReason) -> Void) {
        let already = state.withLock { state -> StopReason? in
            if state.stop == nil { state.handlers.append(handler) }
            return state.stop
        }
        if let already { handler(already) }
    }

    /// Something that was delivered during this launch; acknowledged in the transaction that records its result,
    /// so that a launch which dies first is delivered the same again.
    package func acknowledgeAtEnd(_ acknowledgement: @escaping @Sendable (LedgerTransaction) throws -> Void) {
        guard acknowledgements.add(acknowledgement) else { return }
        DurableWrites.shared.commit("what was delivered in launch \(id)", acknowledgement)
    }

    /// The app began a background transfer in this launch. If the launch died and everything was delivered again, the app would begin the
    /// transfer again. For this reason the ledger records deliveries without waiting for the result.
    package func acknowledgeAtOnce() {
        let earlier = acknowledgements.beginAtOnce()
        if earlier.isEmpty { return }
        DurableWrites.shared.commit("what was delivered in launch \(id)") { for acknowledge in earlier { try acknowledge($0) } }
    }

    /// While a person chooses a file the budget does not run out (ceiling 10 min).
    package func setPersonChoosing(_ isChoosing: Bool) {
        DurableWrites.shared.commit("that a person is choosing", startsAgent: false) { [id] in
            try $0.setPersonChoosing(isChoosing, launch: id)
        }
    }

    /// A delegate of a session, in a launch that may be for it.
    package struct Listener: Sendable {
        let session: String
        /// Returns when it has heard all that waited.
        let hearsAll: @Sendable () async -> Void
        /// Nobody waits for that any more.
        let leavesTheRest: @Sendable () -> Void

        package init(
            session: String, hearsAll: @escaping @Sendable () async -> Void, leavesTheRest: @escaping @Sendable () -> Void
        ) {
            (self.session, self.hearsAll, self.leavesTheRest) = (session, hearsAll, leavesTheRest)
        }
    }

    /// A registered handler runs on a queue of the app's choice, and may begin tasks of its own there.
    package func noteUnseenWork() { state.withLock { $0.hasUnseenWork = true } }

    /// On a test host: whether the process of this launch has not ended.
    var isLiving: Bool { runtime?.part { HostedLaunches() }.contains(self) ?? false }

    /// The sessions whose delegate this launch has. Empty if the launch has its result, or a test host cannot observe all of its work.
    package var awaitedSessions: Set<String> {
        state.withLock { $0.hasUnseenWork || $0.isFinished ? [] : Set($0.listeners.map(\.session)) }
    }

    package func add(_ listener: Listener) { state.withLock { $0.listeners.append(listener) } }

    /// The handlers have returned, which many do at once: the launch has no result before its delegates have heard what it is for. When its
    /// time is over they finish what they hear, and what they heard counts: no handler of the app's is behind them.
    func letListenersHear() async {
        let all = state.withLock { $0.stop == nil ? $0.listeners : [] }
        let listeners = all.filter { isForSession($0.session) }
        guard !listeners.isEmpty else { return }
        state.withLock { $0.countsWhatWasHeard = true }
        onWarning { [self] _ in deliveries.close { for listener in listeners { listener.leavesTheRest() } } }
        for listener in listeners { await listener.hearsAll() }
    }

    /// Whatever the handler returns: this launch did not do its work. The reason stands in the history.
    package func fail(_ reason: String) { state.withLock { $0.failure = $0.failure ?? reason } }

    /// What a person pressed at a notification, and nobody was told of. Where it cannot be read this launch did not do its work: it would count as told.
    package static func undeliveredResponses(to notification: String) -> [NotificationResponseRecord] {
        do {
            return try AppRuntime.shared.ledger().read { try $0.undeliveredResponses() }.filter {
                $0.notification == notification
            }
        } catch {
            current?.fail("what was pressed cannot be read: \(error)")
            return []
        }
    }

    /// The launch ends with a result. Records it durably and leaves the process; the first call counts.
    package func finish(success: Bool, detail: String? = nil) {
        let isFirst = state.withLock { state -> Bool in
            defer { state.isFinished = true }
            return !state.isFinished
        }
        guard isFirst, !isDead else { return }
        let (failure, countsWhatWasHeard) = state.withLock { ($0.failure, $0.countsWhatWasHeard) }
        let result: LaunchOutcome = stopReason != nil ? .expired : success && failure == nil ? .completed : .failed
        let detail = detail ?? failure
        let counts = result == .completed || result == .expired && countsWhatWasHeard
        let acknowledgements = acknowledgements.close(counting: counts)
        KillPoint.reach(.beforeResult)
        do {
            // What the handler asked for comes first: without it this launch has no result, and is made up for.
            if let error = DurableWrites.shared.settle() { throw error }
            AppRuntime.shared.writeDefaults()
            try AppRuntime.shared.ledger().write { transaction in
                // Acknowledged only if the handler got through: work cut short is delivered again.
                for acknowledge in acknowledgements { try acknowledge(transaction) }
                try transaction.setResult(result, detail: detail, ofLaunch: id)
            }
        } catch {
            StandardError.write("the result of launch \(id) could not be recorded: \(error)\n")
            return leave(74)
        }
        KillPoint.reach(.afterResult)
        leaveWhenQuiet(mayContinue: result == .completed)
    }

    /// It ends without a result, and is made up for. The first call counts, and none after a result.
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
            // It is made up for all the same; the history then does not say why.
            AppRuntime.shared.report("\(error)")
        }
        leave(78)
    }

    // MARK: After the result

    /// Work that may go on when the launch has its result: this process lives until it is over, or the launch's time is.
    package func stay(until isOver: @escaping @Sendable () async -> Void) { state.withLock { $0.stays.append(isOver) } }

    private func leaveWhenQuiet(mayContinue: Bool) {
        let (stays, isWarned) = state.withLock { ($0.stays, $0.stop != nil) }
        guard !stays.isEmpty || mayContinue && !begun.isEmpty else { return leaveWithoutLoss() }
        let (quiet, isQuiet) = AsyncStream.makeStream(of: Void.self)
        // Warned before it had a result, it has the rest of its grace time; the agent ends that.
        if !isWarned { onWarning { _ in isQuiet.finish() } }
        onTermination { isQuiet.finish() }
        // On a test host virtual time does not pass while one of these tasks runs.
        let executor = AppRuntime.shared.executor
        Task(executorPreference: executor) { [self] in
            let work = Task(executorPreference: executor) { [self] in
                for stay in stays { await stay() }
                if mayContinue { await continueForAttempts { isQuiet.finish() } }
                isQuiet.finish()
            }
            for await _ in quiet {}
            work.cancel()
            leaveWithoutLoss()
        }
    }

    /// Returns when no attempt at a transfer that the app began is under way.
    ///
    /// - Parameter timeIsUp: Called if that takes longer than ``AgentSettings/continuation``.
    private func continueForAttempts(_ timeIsUp: @escaping @Sendable () -> Void) async {
        guard !begun.isEmpty else { return }
        let continuation = AppRuntime.shared.continuation
        guard continuation > 0 else { return }
        let cancelAlarm = AppRuntime.shared.alarm(after: continuation, timeIsUp)
        defer { cancelAlarm() }
        await begun.untilQuiet()
    }

    /// What was asked for after the result counts as what was asked for before it. A delegate that never returns is ended by the agent,
    /// with the launch's time.
    private func leaveWithoutLoss() {
        guard !isDead else { return leave(0) }
        AppRuntime.whenNothingIsLost(deliveries, beginnings) { [self] in leave(0) }
    }

    /// Waits half a second, longer on a busy computer. Code that follows on the completion of a task, for example the submit of the next
    /// one, runs in that time.
    ///
    /// A process on a test host does not end. There the wait is some turns, also on the main actor, and a few short pauses, because the
    /// thread of that code may be delayed by other programs. Virtual time does not pass.
    package static func graceAfterResult() async {
        let runtime = AppRuntime.shared
        guard runtime.isHosted else {
            for _ in 0..<50 { await pause(0.01) }
            return
        }
        let activity = runtime.part { HostedActivity() }
        activity.enter()
        defer { activity.leave() }
        for turn in 0..<50 {
            if turn.isMultiple(of: 10) {
                await pause(0.0005)
                // Work that was enqueued on the main actor before this has run then, however slow the main thread is.
                await MainActor.run {}
            } else {
                await Task.yield()
            }
            runtime.noteActivity()
        }
    }

    private static func pause(_ seconds: Double) async {
        await withCheckedContinuation { continuation in
            DispatchQueue.global().asyncAfter(deadline: .now() + seconds) { continuation.resume() }
        }
    }
}

/// The launches that live on a test host.
private final class HostedLaunches: Sendable {
    private let living = Mutex<[LaunchContext]>([])

    var only: LaunchContext? { living.withLock { $0.count == 1 ? $0[0] : nil } }

    func contains(_ context: LaunchContext) -> Bool { living.withLock { $0.contains { $0 === context } } }

    func add(_ context: LaunchContext) { living.withLock { $0.append(context) } }

    func remove(_ context: LaunchContext) { living.withLock { $0.removeAll { $0 === context } } }
}
