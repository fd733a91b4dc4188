import ProcessSupport
import BackgroundLedger
import BackgroundScheduling
import Foundation

/// The launches that run: adopted, watched against their budgets and conditions, warned, killed, ended.
struct Launches {
    /// Why only its lock shows whether the process of a launch is alive.
    private enum Unwatched {
        /// An earlier agent started it, and the process has not recorded its identity.
        case unidentified
        /// See ``Adoption/outOfReach``.
        case outOfReach
    }

    /// What is known of one launch that no row says.
    private struct Watch {
        var supervision: LaunchSupervision?
        /// The latest progress of continued processing that was heard of.
        var seenProgress: Date?
        /// `nil` if the end of its process is reported.
        var unwatched: Unwatched?
        /// As the row said when last looked: a person was choosing a file.
        var isPersonChoosing = false
        /// The process is another's: it is neither signalled nor killed.
        var isContinued = false
        var end: ProcessEnd?
    }

    private var watches: [Int64: Watch] = [:]

    /// Launches whose process is not watched: whether their locks are held has to be looked up before a pass.
    var unwatched: [Int64] { watches.filter { $0.value.unwatched != nil }.map(\.key) }

    /// Launches whose process can be neither warned nor killed.
    var outOfReach: Set<Int64> { Set(watches.filter { $0.value.unwatched == .outOfReach }.map(\.key)) }

    func isOutOfReach(_ id: Int64?) -> Bool { id.map { watches[$0]?.unwatched == .outOfReach } ?? false }

    // MARK: What is heard

    /// An earlier agent started the launch, and its process has not recorded its identity.
    mutating func awaitIdentity(of id: Int64) { watches[id, default: Watch()].unwatched = .unidentified }

    /// The process of the launch is out of reach: the launch ends when its lock is free.
    mutating func leave(_ id: Int64) { watches[id, default: Watch()].unwatched = .outOfReach }

    mutating func note(ended id: Int64, _ end: ProcessEnd) { watches[id, default: Watch()].end = end }

    func note(started id: Int64, _ process: ProcessIdentity, _ pass: inout Pass) throws {
        KillPoint.reach(.launchStarted)
        try pass.transaction.launchDidBegin(id, process)
        guard let launch = try pass.transaction.launch(id) else { return }
        pass.log(
            .launchStarted, (.launch, id), (.kind, launch.kind.rawValue), (.identifier, launch.identifier),
            (.generation, launch.generation), (.pid, process.pid))
    }

    /// Where it is known why there was no process, the history says it.
    mutating func note(failed id: Int64, _ reason: String, _ pass: inout Pass) throws {
        guard var launch = try pass.transaction.launch(id), launch.endedAt == nil else { return }
        pass.log(.launchFailed, (.launch, id), (.identifier, launch.identifier), (.reason, reason))
        launch.detail = reason
        try pass.transaction.update(launch)
        note(ended: id, .unknown)
    }

    /// The wall clock moved against the time awake: what is left of every budget stays what it was.
    mutating func shift(by seconds: Double) {
        for id in watches.keys { watches[id]?.supervision?.shift(by: seconds) }
    }

    // MARK: Adopting

    /// Adopts a launch when its process has recorded its identity. Ends a launch when its lock is free.
    ///
    /// - Parameter living: the ``unwatched`` launches whose lock is held.
    mutating func adoptLate(_ pass: inout Pass, living: Set<Int64>) throws {
        for id in unwatched {
            guard let launch = try pass.transaction.launch(id), launch.endedAt == nil else {
                watches[id] = nil
                continue
            }
            let found = watches[id]?.unwatched == .unidentified ? launch.process : nil
            if found == nil, living.contains(id) {
                // The lock ends with the process, and no event reports that: look again.
                pass.wake(at: pass.now.addingTimeInterval(1))
                continue
            }
            watches[id]?.unwatched = nil
            if let found { pass.perform(.adoptLaunch(id, found)) } else { note(ended: id, .unknown) }
        }
    }

    /// Continued processing ends with a result, or with the process that a person started: no lock and no child tells.
    mutating func endContinued(_ pass: Pass, _ neighbours: Neighbours) throws {
        for launch in try pass.transaction.liveLaunches() where launch.kind == .continuedProcessing {
            guard let id = launch.id else { continue }
            if launch.result != nil { note(ended: id, .exited(0)) }
            if launch.host.map(neighbours.hasEnded) ?? true { note(ended: id, .unknown) }
        }
    }

    // MARK: Ending

    /// Ends whose process is gone; what becomes of their requests follows. Returns the rows as they are now.
    mutating func settleEnded(_ pass: inout Pass) throws -> [LaunchRecord] {
        var settled: [LaunchRecord] = []
        for (id, end) in watches.compactMap({ id, watch in watch.end.map { (id, $0) } }).sorted(by: { $0.0 < $1.0 }) {
            let watch = watches.removeValue(forKey: id)
            guard var launch = try pass.transaction.launch(id), launch.endedAt == nil else { continue }
            Self.recordStop(by: watch?.supervision, &launch)
            KillPoint.reach(.launchEnded)
            settled.append(try LaunchSettlement.settle(launch, end, &pass))
            pass.perform(.forgetLaunch(id))
        }
        return settled
    }

    // MARK: Supervising

    /// Seconds that a launch may take; of continued processing, that it may be without progress.
    private static func budget(for kind: LaunchKind, _ settings: AgentSettings) -> Double {
        switch kind {
        case .processing: settings.processingBudget
        case .continuedProcessing: settings.progressPatience
        case .appRefresh, .urlSession, .notificationResponse, .significantTimeChange: settings.refreshBudget
        }
    }

    /// Budgets run from the launch's start, also over the death of an agent.
    mutating func supervise(_ pass: inout Pass, _ conditions: Conditions) throws {
        for var launch in try pass.transaction.liveLaunches() {
            guard let id = launch.id, !isOutOfReach(id) else { continue }
            if Self.recordStop(by: watches[id]?.supervision, &launch) { try pass.transaction.update(launch) }
            if let lost = conditions.lost(by: launch, pass) { try stop(launch, .conditionLost, because: lost, &pass) }
            var watch = watches[id] ?? Watch()
            var supervision = watch.supervision ?? takeUp(launch, &pass)
            if let progressAt = launch.progressAt, progressAt != watch.seenProgress {
                watch.seenProgress = progressAt
                // When it was heard of: the moment in the row is by a clock that may have been set since.
                supervision.moved(at: pass.now)
            }
            // The process itself ends the continuation. Because of the grace time the agent is not first.
            if launch.result == .completed, launch.kind != .continuedProcessing, pass.settings.continuation > 0 {
                supervision.continues(for: pass.settings.continuation + pass.settings.grace, from: pass.now)
            }
            let command = supervision.tick(now: pass.now, isPersonChoosing: launch.isPersonChoosing)
            watch.supervision = supervision
            (watch.isPersonChoosing, watch.isContinued) = (launch.isPersonChoosing, launch.kind == .continuedProcessing)
            watches[id] = watch
            if let command { try apply(command, to: launch, &pass) }
            pass.wake(at: supervision.deadline)
        }
    }

    /// Budgets while the ledger cannot be written: a full disk gives nobody more time. The rows say it once they can.
    ///
    /// - Parameter now: by the clock as it was when the launches were last supervised.
    mutating func superviseUnrecorded(now: Date) -> [AgentEffect] {
        var effects: [AgentEffect] = []
        for (id, watch) in watches.sorted(by: { $0.key < $1.key }) where !watch.isContinued && !isOutOfReach(id) {
            switch watches[id]?.supervision?.tick(now: now, isPersonChoosing: watch.isPersonChoosing) {
            case .warn: effects.append(.warnLaunch(id))
            case .kill: effects.append(.killLaunch(id))
            case nil: break
            }
        }
        return effects
    }

    /// What ``superviseUnrecorded(now:)`` decided and no row says yet.
    ///
    /// - Returns: whether there was something to record.
    @discardableResult
    private static func recordStop(by supervision: LaunchSupervision?, _ launch: inout LaunchRecord) -> Bool {
        guard let supervision, supervision.isStopping, launch.stopReason == nil, launch.kind != .continuedProcessing else {
            return false
        }
        launch.stopReason = .expired
        return true
    }

    /// A launch that this agent did not look at before.
    private func takeUp(_ launch: LaunchRecord, _ pass: inout Pass) -> LaunchSupervision {
        // From the future: the clock was set back under an earlier agent. Its time is at most a whole one from here.
        var fresh = LaunchSupervision(
            startedAt: min(launch.startedAt, pass.now), budget: Self.budget(for: launch.kind, pass.settings),
            grace: pass.settings.grace)
        guard launch.stopReason != nil, let id = launch.id else { return fresh }
        // The agent that committed the reason may have died before it sent the signal; twice does no harm.
        fresh.adoptWarned(now: pass.now)
        if launch.kind != .continuedProcessing { pass.perform(.warnLaunch(id)) }
        return fresh
    }

    /// - Parameter detail: what the history says of it, where the reason alone does not.
    mutating func stop(_ launch: LaunchRecord, _ reason: StopReason, because detail: String? = nil, _ pass: inout Pass) throws {
        guard let id = launch.id, !isOutOfReach(id) else { return }
        var supervision = watches[id]?.supervision ?? takeUp(launch, &pass)
        let command = supervision.stop(reason, now: pass.now)
        watches[id, default: Watch()].supervision = supervision
        if let command { try apply(command, to: launch, because: detail, &pass) }
    }

    mutating func stopAll(_ reason: StopReason, _ pass: inout Pass) throws {
        for launch in try pass.transaction.liveLaunches() { try stop(launch, reason, &pass) }
    }

    private mutating func apply(
        _ command: LaunchSupervision.Command, to launch: LaunchRecord, because detail: String? = nil, _ pass: inout Pass
    ) throws {
        guard let id = launch.id else { return }
        switch command {
        case .warn(let given):
            let reason = launch.kind == .continuedProcessing && given == .expired ? .noProgress : given
            try pass.transaction.stopLaunch(id, reason, detail: detail)
            pass.log(.launchWarned, (.launch, id), (.identifier, launch.identifier), (.reason, reason.rawValue))
            // A process that a person started hears of it through the ledger; it is neither signalled nor killed.
            if launch.kind != .continuedProcessing { pass.perform(.warnLaunch(id)) }
        case .kill where launch.kind == .continuedProcessing:
            pass.perform(.endLaunch(id))
        case .kill:
            pass.log(.launchKilled, (.launch, id), (.identifier, launch.identifier))
            pass.perform(.killLaunch(id))
        }
    }
}
