import ProcessSupport
import BackgroundLedger
import BackgroundScheduling
import Foundation

/// The part of the agent for running launches. This part adopts launches, checks their budgets and conditions, and warns, kills
/// and ends them.
struct Launches {
    /// The reason why only the lock of a launch shows whether its process is alive.
    private enum Unwatched {
        /// An earlier agent started the launch, and the process has not yet recorded its identity.
        case unidentified
        /// See ``Adoption/outOfReach``.
        case outOfReach
    }

    /// The agent's state of a launch, in addition to the launch's row in the ledger.
    private struct Watch {
        var timer: LaunchSupervision?
        /// The date of the latest progress of continued processing that the agent has read.
        var seenProgress: Date?
        /// The reason why the process is not watched. `nil` if the agent is notified of the end of the process.
        var unwatched: Unwatched?
        /// `true` if the user was choosing a file at the last pass.
        var isPersonChoosing = false
        /// `true` if the launch is continued processing. The user started its process, so the agent does not signal or kill this
        /// process.
        var isContinued = false
        var end: ProcessEnd?
    }

    private var watches: [Int64: Watch] = [:]

    /// The launches whose process is not watched. The locks of these launches have to be checked before a pass.
    var unwatched: [Int64] { watches.filter { $0.value.unwatched != nil }.map(\.key) }

    /// The launches whose process cannot be warned or killed.
    var outOfReach: Set<Int64> { Set(watches.filter { $0.value.unwatched == .outOfReach }.map(\.key)) }

    func isOutOfReach(_ id: Int64?) -> Bool { id.map { watches[$0]?.unwatched == .outOfReach } ?? false }

    // MARK: Events

    /// Waits for the identity of a process. An earlier agent started the process of the launch, and the process has not yet
    /// recorded its identity.
    mutating func awaitIdentity(of id: Int64) { watches[id, default: Watch()].unwatched = .unidentified }

    /// Records that the agent cannot watch, warn or kill the process of a launch. The launch ends when its lock is free.
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

    /// Handles a launch whose process could not be started. The history contains the reason if the reason is known.
    mutating func record(failed id: Int64, _ reason: String, _ pass: inout Pass) throws {
        guard let launch = try pass.transaction.launch(id), launch.endedAt == nil else { return }
        pass.log(.launchFailed, (.launch, id), (.identifier, launch.identifier), (.reason, reason))
        try pass.transaction.handle(.notStarted(because: reason), launch: id)
        record(ended: id, .unknown)
    }

    /// Moves the deadlines after the clock was set, so that the remaining time of every budget does not change.
    mutating func shift(by seconds: Double) {
        for id in watches.keys { watches[id]?.timer?.shift(by: seconds) }
    }

    // MARK: Adopting

    /// Adopts a launch after its process recorded its identity. Ends a launch if its lock is free.
    ///
    /// - Parameter living: the launches of ``unwatched`` whose lock is held.
    mutating func adoptLate(_ pass: inout Pass, living: Set<Int64>) throws {
        for id in unwatched {
            guard let launch = try pass.transaction.launch(id), launch.endedAt == nil else {
                watches[id] = nil
                continue
            }
            let found = watches[id]?.unwatched == .unidentified ? launch.process : nil
            if found == nil, living.contains(id) {
                // No event reports the release of a lock, so the lock is checked again after one second.
                pass.wake(at: pass.now.addingTimeInterval(1))
                continue
            }
            watches[id]?.unwatched = nil
            if let found { pass.perform(.adoptLaunch(id, found)) } else { record(ended: id, .unknown) }
        }
    }

    /// Ends continued processing after its result, or after the end of the process that the user started. The agent has to check
    /// this in each pass, because no lock and no child process reports the end.
    mutating func endContinued(_ pass: Pass, _ watchedProcesses: WatchedProcesses) throws {
        for launch in try pass.transaction.liveLaunches() where launch.kind == .continuedProcessing {
            guard let id = launch.id else { continue }
            if launch.result != nil { record(ended: id, .exited(0)) }
            if launch.host.map(watchedProcesses.hasEnded) ?? true { record(ended: id, .unknown) }
        }
    }

    // MARK: Ending

    /// Ends launches whose process has ended, and then updates their requests. Returns the changed rows.
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

    /// Returns the time limits of a launch. For continued processing, the budget limits the time without progress.
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

    /// Enforces budgets while the ledger cannot be written, because a full disk must not extend the time. The rows of the
    /// launches are updated later.
    ///
    /// - Parameter now: the current date on the clock that was used when the launches were last supervised.
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
