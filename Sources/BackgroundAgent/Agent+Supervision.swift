import BackgroundLedger
import BackgroundScheduling
import Foundation

// Launches are watched against their budgets and their conditions, warned, and killed.
extension Agent {
    /// Of continued processing: how long it may be without progress.
    private func budget(for kind: LaunchKind, _ settings: AgentSettings) -> Double {
        switch kind {
        case .processing: settings.processingBudget
        case .continuedProcessing: settings.progressPatience
        case .appRefresh, .urlSession, .notificationResponse, .significantTimeChange: settings.refreshBudget
        }
    }

    /// Budgets run from the launch's start, also over the death of an agent.
    func supervise(_ pass: inout Pass) throws {
        for launch in try pass.transaction.liveLaunches() {
            let id = launch.id!
            if let lost = lostCondition(of: launch) { try stop(launch, .conditionLost, because: lost, &pass) }
            var supervision =
                supervised[id]
                ?? {
                    // From the future: the clock was set back under an earlier agent. Its time is at most a whole one from here.
                    var fresh = LaunchSupervision(
                        startedAt: min(launch.startedAt, pass.now), budget: budget(for: launch.kind, pass.settings),
                        grace: pass.settings.grace)
                    if launch.stopReason != nil {
                        // The agent that committed the reason may have died before it sent the signal; twice does no harm.
                        fresh.adoptWarned(now: pass.now)
                        if launch.kind != .continuedProcessing { pass.effects.append(.warnLaunch(id)) }
                    }
                    return fresh
                }()
            if let progressAt = launch.progressAt, seenProgress.updateValue(progressAt, forKey: id) != progressAt {
                // When it was heard of: the moment in the row is by a clock that may have been set since.
                supervision.moved(at: pass.now)
            }
            if let command = supervision.tick(now: pass.now, isPersonChoosing: launch.isPersonChoosing) {
                try apply(command, to: launch, &pass)
            }
            supervised[id] = supervision
            pass.wake(at: supervision.deadline(isPersonChoosing: launch.isPersonChoosing))
        }
    }

    /// A condition that a running launch was promised holds no longer. What was launched by hand was promised none.
    private func lostCondition(of launch: LaunchRecord) -> String? {
        guard knowsConditions, !launch.simulated else { return nil }
        let conditions = ports.conditions.current
        if launch.requiresNetwork, !conditions.isNetworkAvailable { return "the network was lost" }
        if launch.requiresExternalPower, !conditions.isOnExternalPower { return "external power was lost" }
        return nil
    }

    /// - Parameter detail: what the history says of it, where the reason alone does not.
    func stop(_ launch: LaunchRecord, _ reason: StopReason, because detail: String? = nil, _ pass: inout Pass) throws {
        var supervision =
            supervised[launch.id!]
            ?? LaunchSupervision(
                startedAt: launch.startedAt, budget: budget(for: launch.kind, pass.settings), grace: pass.settings.grace)
        if let command = supervision.stop(reason, now: pass.now) { try apply(command, to: launch, because: detail, &pass) }
        supervised[launch.id!] = supervision
    }

    private func apply(
        _ command: LaunchSupervision.Command, to launch: LaunchRecord, because detail: String? = nil, _ pass: inout Pass
    ) throws {
        switch command {
        case .warn(let given):
            let reason = launch.kind == .continuedProcessing && given == .expired ? .noProgress : given
            // The row as it is now: the app process writes to it too.
            guard var current = try pass.transaction.launch(launch.id!) else { return }
            current.stopReason = reason
            current.detail = current.detail ?? detail
            try pass.transaction.update(current)
            log.note("\(launch.identifier): \(reason.rawValue), warned")
            // A process that a person started hears of it through the ledger; it is neither signalled nor killed.
            if launch.kind != .continuedProcessing { pass.effects.append(.warnLaunch(launch.id!)) }
        case .kill where launch.kind == .continuedProcessing:
            hear(.launchEnded(launch.id!, .unknown))
        case .kill:
            log.note("\(launch.identifier): did not return within the grace time, killed")
            pass.effects.append(.killLaunch(launch.id!))
        }
    }
}
