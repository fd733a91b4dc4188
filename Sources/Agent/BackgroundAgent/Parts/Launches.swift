import ProcessSupport
import BackgroundLedger
import BackgroundScheduling
import Foundation

/// The running launches. This part adopts launches, checks their time budgets and conditions, and warns, kills and ends them.
struct Launches {
    /// The reason why only the lock shows if the process of a launch is alive.
    private enum Unwatched {
        /// An earlier agent started the launch, and the launch's process has not recorded its identity.
        case unidentified
        /// See ``Adoption/outOfReach``.
        case outOfReach
    }

    /// The agent's state of a launch, in addition to the launch's row in the ledger.
    private struct Watch {
        var timer: LaunchSupervision?
        /// The time of the latest progress of continued processing that was seen.
        var seenProgress: Date?
        /// `nil` if the agent is notified when the launch's process ends.
        var unwatched: Unwatched?
        /// `true` if the row showed at the last pass that the user was choosing a file.
        var isPersonChoosing = false
        /// `true` if the launch is continued processing. The user started the process, so the agent neither signals nor kills it.
        var isContinued = false
        var end: ProcessEnd?
    }

    private var watches: [Int64: Watch] = [:]

    /// The launches whose process is not watched: their locks have to be checked before a pass.
    var unwatched: [Int64] { watches.filter { $0.value.unwatched != nil }.map(\.key) }

    /// The launches whose process can be neither warned nor killed.
    var outOfReach: Set<Int64> { Set(watches.filter { $0.value.unwatched == .outOfReach }.map(\.key)) }

    func isOutOfReach(_ id: Int64?) -> Bool { id.map { watches[$0]?.unwatched == .outOfReach } ?? false }

    // MARK: Events

    /// Waits for the identity: an earlier agent started the launch, and its process has not recorded its identity.
    mutating func awaitIdentity(of id: Int64) { watches[id, default: Watch()].unwatched = .unidentified }

    /// Handles a process that is out of reach: the launch ends when its lock is free.
    mutating func markUnwatched(_ id: Int64) { watches[id, default: Watch()].unwatched = .outOfReach }

    mutating func record(ended id: Int64, _ end: ProcessEnd) { watches[id, default: Watch()].end = end }

    func record(started id: Int64, _ process: ProcessIdentity, _ pass: inout Pass) throws {
        KillPoint.reach(.launchStarted)
        try pass.transaction.launchDidBegin(id, process)
        guard let launch = try pass.transaction.launch(id) else { return }
        pass.log(
            .launchStarted, (.launch, id), (.kind, launch.kind.rawValue), (.identifier, launch.identifier),
            (.generation, launch.generation), (.pid, process.pid))
    }

    /// Handles a launch without a process. The history contains the reason if it is known.
    mutating func record(failed id: Int64, _ reason: String, _ pass: inout Pass) throws {
        guard let launch = try pass.transaction.launch(id), launch.endedAt == nil else { return }
        pass.log(.launchFailed, (.launch, id), (.identifier, launch.identifier), (.reason, reason))
        try pass.transaction.handle(.notStarted(because: reason), launch: id)
        record(ended: id, .unknown)
    }

    /// Shifts the deadlines after the clock was set, so that the remaining time of every budget is unchanged.
    mutating func shift(by seconds: Double) {
        for id in watches.keys { watches[id]?.timer?.shift(by: seconds) }
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
                // No event reports that a lock was released, so the lock is checked again after one second.
                pass.wake(at: pass.now.addingTimeInterval(1))
                continue
            }
            watches[id]?.unwatched = nil
            if let found { pass.perform(.adoptLaunch(id, found)) } else { record(ended: id, .unknown) }
        }
    }

    /// Ends continued processing after a result, or after the end of the process that the user started. The agent must check this,
    /// because no lock and no child process reports the end.
    mutating func endContinued(_ pass: Pass, _ watchedProcesses: WatchedProcesses) throws {
        for launch in try pass.transaction.liveLaunches() where launch.kind == .continuedProcessing {
            guard let id = launch.id else { continue }
            if launch.result != nil { record(ended: id, .exited(0)) }
            if launch.host.map(watchedProcesses.hasEnded) ?? true { record(ended: id, .unknown) }
        }
    }

    // MARK: Ending

    /// Ends launches whose process has ended, and then settles their requests. Returns the changed rows.
    mutating func endFinishedLaunches(_ pass: inout Pass) throws -> [LaunchRecord] {
        var settled: [LaunchRecord] = []
        for (id, end) in watches.compactMap({ id, watch in watch.end.map { (id, $0) } }).sorted(by: { $0.0 < $1.0 }) {
            let watch = watches.removeValue(forKey: id)
            guard let launch = try pass.transaction.launch(id), launch.endedAt == nil else { continue }
            KillPoint.reach(.launchEnded)
            settled.append(try LaunchSettlement.end(launch, end, watch?.timer, &pass))
            pass.perform(.forgetLaunch(id))
        }
        return settled
    }

    // MARK: Supervising

    /// Returns the time limits. The budget of continued processing is the time without progress.
    private static func limits(for kind: LaunchKind, _ settings: AgentSettings) -> LaunchLife.Limits {
        let budget =
            switch kind {
            case .processing: settings.processingBudget
            case .continuedProcessing: settings.progressPatience
            case .appRefresh, .urlSession, .notificationResponse, .significantTimeChange: settings.refreshBudget
            }
        return LaunchLife.Limits(budget: budget, grace: settings.grace, continuation: settings.continuation)
    }

    mutating func supervise(_ pass: inout Pass, _ conditions: Conditions) throws {
        for launch in try pass.transaction.liveLaunches() {
            guard let id = launch.id, !isOutOfReach(id) else { continue }
            let hasMoved = launch.progressAt != nil && launch.progressAt != watches[id]?.seenProgress
            let look = LaunchLife.Event.supervised(
                Self.limits(for: launch.kind, pass.settings), isPersonChoosing: launch.isPersonChoosing, hasMoved: hasMoved,
                lostCondition: conditions.lost(by: launch, pass), now: pass.now)
            if hasMoved { watches[id, default: Watch()].seenProgress = launch.progressAt }
            try handle(look, launch, &pass)
            watches[id]?.isPersonChoosing = launch.isPersonChoosing
            watches[id]?.isContinued = launch.kind == .continuedProcessing
            pass.wake(at: watches[id]?.timer?.deadline)
        }
    }

    /// Enforces budgets while the ledger cannot be written: a full disk must not extend the time. The rows are updated later.
    ///
    /// - Parameter now: the present time, by the clock that was used when the launches were last supervised.
    mutating func superviseUnrecorded(now: Date) -> [AgentEffect] {
        var effects: [AgentEffect] = []
        for (id, watch) in watches.sorted(by: { $0.key < $1.key }) where !watch.isContinued && !isOutOfReach(id) {
            switch watches[id]?.timer?.tick(now: now, isPersonChoosing: watch.isPersonChoosing) {
            case .warn: effects.append(.warnLaunch(id))
            case .kill: effects.append(.killLaunch(id))
            case nil: break
            }
        }
        return effects
    }

    mutating func stop(_ launch: LaunchRecord, _ reason: StopReason, _ pass: inout Pass) throws {
        guard let id = launch.id, !isOutOfReach(id) else { return }
        let limits = Self.limits(for: launch.kind, pass.settings)
        try handle(.stopWanted(reason, limits, now: pass.now), launch, &pass)
    }

    mutating func stopAll(_ reason: StopReason, _ pass: inout Pass) throws {
        for launch in try pass.transaction.liveLaunches() { try stop(launch, reason, &pass) }
    }

    private mutating func handle(_ event: LaunchLife.Event, _ launch: LaunchRecord, _ pass: inout Pass) throws {
        guard let id = launch.id else { return }
        var launch = launch
        for command in try pass.transaction.handle(event, &launch, &watches[id, default: Watch()].timer) {
            switch command {
            case .logStop(let reason):
                pass.log(.launchWarned, (.launch, id), (.identifier, launch.identifier), (.reason, reason.rawValue))
            case .warn: pass.perform(.warnLaunch(id))
            case .kill:
                pass.log(.launchKilled, (.launch, id), (.identifier, launch.identifier))
                pass.perform(.killLaunch(id))
            case .end: pass.perform(.endLaunch(id))
            }
        }
    }
}
