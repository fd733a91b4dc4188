import BackgroundLedger
import BackgroundScheduling
import BackgroundTasksTesting
import Foundation

/// Checks the invariants that must be true at all times, even when processes die.
struct InvariantWatch {
    private(set) var broken: [String] = []
    var calmSince: Date?
    /// The number of the last launch before `calmSince`.
    var latestBeforeCalm: Int64 = 0
    private var outcomes: [Int64: LaunchOutcome] = [:]
    private var seenLaunches: Int64 = 0
    /// The running launches, and the launches that ended last. A late result must not change a launch that has ended.
    private var open: [Int64] = []
    private var lately: [Int64] = []
    private var agentSince: (number: Int, awake: Double) = (0, 0)
    /// For each running process: the waking seconds when the process was first seen, and the number of seconds for which the
    /// process may run.
    private var processes: [Int64: (since: Double, limit: Double)] = [:]
    /// For each process: the number of seconds by which the agent may end the process late.
    private var lateness: [Int64: Double] = [:]
    private var servedNoons: [Date: ServedNoon] = [:]
    private var lastCommits = -1
    /// The notifications that were possibly not on the screen at the last check, and all known notifications.
    private var notices: (undelivered: Set<String>, known: Set<String>) = ([], [])
    /// For each notification: the number of agents that died before the ledger recorded the notification as shown. After the
    /// death of such an agent, the next agent shows the notification again.
    private(set) var deathsBeforeShown: [String: Int] = [:]
    private var agentsSeen = 0

    private struct ServedNoon {
        let launch: Int64
        /// The earliest time that the clock has shown after the launch of the occurrence ended with a result.
        var earliest: Date
        /// The number of seconds by which the clock was ahead when the launch of the occurrence ended with a result. `leastLead`
        /// is the minimum since then.
        let lead: Double
        var leastLead: Double
    }

    private static func lead(_ clock: VirtualClock) -> Double { clock.date.timeIntervalSince1970 - clock.awake - clock.slept }

    init() {}

    /// Continues the checks with another ledger.
    init(keeping other: InvariantWatch) {
        (broken, deathsBeforeShown, agentsSeen) = (other.broken, other.deathsBeforeShown, other.agentsSeen)
        notices.known = other.notices.known
    }

    mutating func begin(_ machine: SimulatedHost) throws { try look(machine) }

    private mutating func found(_ what: String) { if !broken.contains(what) { broken.append(what) } }

    mutating func look(_ machine: SimulatedHost) throws {
        try checkProcesses(machine)
        for noon in servedNoons.keys {
            servedNoons[noon]!.earliest = min(servedNoons[noon]!.earliest, machine.clock.date)
            servedNoons[noon]!.leastLead = min(servedNoons[noon]!.leastLead, Self.lead(machine.clock))
        }
        // If nothing was committed, no invariant of the ledger can have changed.
        guard machine.ledger.commitCount != lastCommits else { return }
        lastCommits = machine.ledger.commitCount
        try checkNotices(machine)
        let (live, recent) = try machine.ledger.read { transaction in
            let latest = try transaction.latestLaunch() ?? 0
            let new = latest > seenLaunches ? Array(seenLaunches + 1...latest) : []
            return (try transaction.liveLaunches(), try (open + lately + new).compactMap { try transaction.launch($0) })
        }
        // A request has at most one running launch.
        let tokens = live.compactMap(\.requestToken)
        if Set(tokens).count != tokens.count { found("two launches of one request live at once") }
        for launch in recent {
            guard let id = launch.id else { continue }
            // The outcome of a launch is final. A late result of an earlier generation must not change the outcome.
            if let outcome = launch.outcome {
                if let before = outcomes[id], before != outcome { found("the outcome of launch \(id) changed after its end") }
                if outcomes[id] == nil { try checkLaunchEnd(launch, machine) }
                outcomes[id] = outcome
            }
            if id > seenLaunches { try checkLaunchStart(launch, machine) }
        }
        seenLaunches = max(seenLaunches, recent.compactMap(\.id).max() ?? 0)
        open = recent.filter { $0.endedAt == nil }.compactMap(\.id)
        lately = Array(recent.filter { $0.endedAt != nil }.compactMap(\.id).sorted().suffix(3))
    }

    private mutating func checkNotices(_ machine: SimulatedHost) throws {
        let rows = try machine.ledger.read { try $0.notifications() }
        let new = Set(rows.map(\.identifier)).subtracting(notices.known)
        let deaths = machine.agentsStarted - max(1, agentsSeen)
        if deaths > 0 { for identifier in notices.undelivered.union(new) { deathsBeforeShown[identifier, default: 0] += deaths } }
        agentsSeen = machine.agentsStarted
        notices.known.formUnion(new)
        notices.undelivered = Set(rows.filter { $0.state == .pending || $0.state == .presenting }.map(\.identifier))
    }

    /// Checks that each launch has a reason. Also checks that a launch is repeated only if the launch before had no result.
    private mutating func checkLaunchStart(_ launch: LaunchRecord, _ machine: SimulatedHost) throws {
        if launch.reason.isEmpty { found("launch \(launch.id!) does not say why") }
        // An interrupted delivery is repeated even if it had a result, so this check does not apply to deliveries.
        if launch.generation > 1, launch.requestToken != nil, launch.outcome != .skipped {
            let earlier = try machine.ledger.read { try $0.history(limit: 50) }
            let before = earlier.last { $0.identifier == launch.identifier && $0.id! < launch.id! && $0.outcome != .skipped }
            if let before, before.outcome?.isResult == true {
                found("launch \(launch.id!) of \(launch.identifier) repeats one that had a result")
            }
        }
    }

    private mutating func checkLaunchEnd(_ launch: LaunchRecord, _ machine: SimulatedHost) throws {
        // No noon has two launches with a result. The exception is a clock that was ahead, or that was later set back, by more
        // than half a day. If the clock was changed so much, it is unknown which time was right.
        if launch.identifier == "noon", let noon = launch.servedOccurrence, launch.outcome?.isResult == true {
            if let other = servedNoons[noon], other.launch != launch.id,
                noon.timeIntervalSince(other.earliest) <= WallClockRule.servedAhead,
                other.lead - other.leastLead <= WallClockRule.servedAhead
            {
                found("the noon of \(noon) was served twice")
            }
            let lead = Self.lead(machine.clock)
            servedNoons[noon] = ServedNoon(launch: launch.id!, earliest: machine.clock.date, lead: lead, leastLead: lead)
        }
    }

    /// Checks that no process runs longer than its time limit and its grace time while an agent is running.
    private mutating func checkProcesses(_ machine: SimulatedHost) throws {
        let awake = machine.clock.awake
        if agentSince.number != machine.agentsStarted { agentSince = (machine.agentsStarted, awake) }
        let living = machine.livingProcesses
        processes = processes.filter { living.contains($0.key) }
        for launch in living where processes[launch] == nil {
            let kind = try machine.ledger.read { try $0.launch(launch)?.kind }
            processes[launch] = (awake, Self.budget(of: kind) + AgentSettings().grace + 5)
        }
        guard machine.hasAgent, !machine.isAgentBeginning else { return agentSince.number = -1 }
        // If an agent cannot write to the ledger, it checks the processes only once a minute. The warning and the kill can
        // therefore each be one minute late.
        if machine.isAgentInSetback { for launch in processes.keys { lateness[launch] = 120 } }
        lateness = lateness.filter { processes[$0.key] != nil }
        for (launch, process) in processes {
            let limit = process.limit + lateness[launch, default: 0]
            guard awake - max(process.since, agentSince.awake) > limit else { continue }
            found("the process of launch \(launch) runs beyond \(Int(limit)) s under the eyes of an agent")
        }
    }

    /// Returns the promised time limit in seconds. The promise does not depend on the settings of the agent.
    private static func budget(of kind: LaunchKind?) -> Double { kind == .processing ? 600 : 30 }
}

extension Simulation {
    /// Returns the invariants that are broken after the calm period. Accepted work must not be lost or done twice, and must leave
    /// no files or rows.
    func invariantsInTheEnd() throws -> [String] {
        var broken: [String] = []
        let transaction = try machine.ledger.read { transaction in
            (
                history: try transaction.history(limit: 1_000), requests: try transaction.requests(),
                transfers: try transaction.transfers(), events: try transaction.undeliveredEvents(),
                notices: try transaction.notifications(), known: try transaction.spoolFiles(),
                live: try transaction.liveLaunches()
            )
        }
        let now = machine.clock.date
        // An accepted request must have a launch with a result, or must still be waiting.
        for (token, identifier) in app.memory.accepted {
            if let waiting = transaction.requests.first(where: { $0.token == token }) {
                if (waiting.earliestBegin ?? now) < now - 60 { broken.append("\(identifier) is due and not launched") }
            } else if !transaction.history.contains(where: { $0.requestToken == token && $0.outcome?.isResult == true }) {
                broken.append("\(identifier) was accepted, and neither launched to a result nor is it waiting")
            }
        }
        broken += noonsOfTheCalm(transaction.history)
        broken += ofTransfers(transaction.transfers)
        for event in transaction.events { broken.append("transfer \(event.transfer) ended and its app was not told") }
        for identifier in app.memory.told where !machine.desktop.history.contains(where: { $0.identifier == identifier }) {
            broken.append("\(identifier) was never shown")
        }
        broken += twiceShown()
        if transaction.notices.contains(where: { $0.state == .presenting }) { broken.append("a notification hangs half shown") }
        if !transaction.live.isEmpty { broken.append("launches live that nothing keeps: \(transaction.live.map(\.identifier))") }
        let files = try FileManager.default.contentsOfDirectory(atPath: machine.directories.spool.path)
        let orphans = files.filter { !transaction.known.contains($0) }
        if !orphans.isEmpty { broken.append("files in the spool that no row knows: \(orphans)") }
        return broken
    }

    /// Examines the two days without faults at the end of the simulation. For each noon that the clock shows, one daily check
    /// must run within a minute.
    private func noonsOfTheCalm(_ history: [LaunchRecord]) -> [String] {
        guard let since = watch.calmSince else { return [] }
        var broken: [String] = []
        let calm = Set(history.filter { $0.id! > watch.latestBeforeCalm }.map { $0.id! })
        // The pause after failed launches is at most six hours. If a noon falls into this pause, the check of this noon runs
        // late, together with the check of the noon before.
        var noon = WallClockRule.daily(.noon).next(after: since + 6 * 3_600, in: machine.clock.timeZone)
        while noon < machine.clock.date - 3_600 {
            let results = history.filter { $0.identifier == "noon" && $0.outcome?.isResult == true }
            // If the clock was set back, the check of this noon or of a later noon has already run.
            if results.contains(where: { ($0.servedOccurrence ?? .distantPast) >= noon && !calm.contains($0.id!) }) {
                noon = WallClockRule.daily(.noon).next(after: noon, in: machine.clock.timeZone)
                continue
            }
            let served = results.filter { $0.servedOccurrence == noon }
            if served.count != 1 { broken.append("the noon of \(noon) was served \(served.count) times") }
            if let first = served.first, first.startedAt < noon || first.startedAt > noon + 60 {
                broken.append("the noon of \(noon) was served at \(first.startedAt)")
            }
            noon = WallClockRule.daily(.noon).next(after: noon, in: machine.clock.timeZone)
        }
        return broken
    }

    private func ofTransfers(_ transfers: [TransferRecord]) -> [String] {
        var broken: [String] = []
        let known = Set(transfers.compactMap(\.id))
        // The check uses the simulation's record of the promises to the app, because the ledger may have lost a transfer.
        for id in Set(app.memory.files.keys).union(app.memory.photos.keys).sorted() {
            if !known.contains(id) { broken.append("transfer \(id) was accepted and is gone") }
            if app.memory.handled[id] == nil { broken.append("transfer \(id) ended and no launch handled it") }
        }
        for key in app.memory.wanted.keys.sorted() where !app.memory.heard.contains(key) {
            broken.append("\(key) was wanted, and no launch heard of its end")
        }
        for transfer in transfers {
            guard let id = transfer.id else { continue }
            if !transfer.state.isTerminal { broken.append("transfer \(id) is \(transfer.state.rawValue) after days of quiet") }
            if app.memory.cancelled.contains(id), transfer.state != .cancelled {
                broken.append("transfer \(id) was cancelled and is \(transfer.state.rawValue)")
            }
            if transfer.state == .failed, transfer.errorMessage == nil { broken.append("transfer \(id) failed and says not why") }
            if let photo = app.memory.photos[id] {
                let count = server.count(photo)
                let isOnce = count == 1 || app.sentAgain.contains(photo) && count > 1
                if transfer.state == .completed, !isOnce { broken.append("photo \(id) is there \(count) times") }
                if count > 1, !isOnce { broken.append("photo \(id) is there \(count) times, \(transfer.state.rawValue)") }
                // If the ledger comes from a backup, the ledger may list a photo as unsent although the photo was sent after the
                // backup. The agent removed its copy of the photo after the upload, so the transfer fails.
                if transfer.state == .failed, !app.sentAgain.contains(photo), !isGivenUp(transfer) {
                    broken.append("photo \(id) failed: \(transfer.errorMessage ?? "")")
                }
            }
            if app.memory.files[id] != nil, transfer.state == .failed, !isGivenUp(transfer) {
                broken.append("download \(id) failed: \(transfer.errorMessage ?? "")")
            }
        }
        return broken
    }

    /// Returns whether a transfer ended after seven days without progress, as on iOS. Seven days without progress occur only in a
    /// simulated month. A transfer that ended after seven days was tried at least once, and has an error message.
    private func isGivenUp(_ transfer: TransferRecord) -> Bool {
        length == .month
            && transfer.errorMessage?.hasPrefix("The transfer made no progress for 604800 s. The last error:") == true
    }

    /// Returns the notifications that were shown too often. A notification may be shown again if an agent died before the agent
    /// recorded that the notification was shown, or if the notification server ended.
    private func twiceShown() -> [String] {
        // The agent's own notifications are ignored, because the agent shows them again whenever their cause returns.
        let history = machine.desktop.history.filter { !$0.identifier.hasPrefix("background-agent.") }
        return Dictionary(grouping: history, by: \.identifier).compactMap { identifier, showings in
            // Each server may show a notification once. In addition, a ledger from a backup may have no record that the
            // notification was shown.
            let allowed =
                Set(showings.map(\.serverNumber)).count + (watch.deathsBeforeShown[identifier] ?? 0) + trouble.restorations
            return showings.count > allowed
                ? "\(identifier) was shown \(showings.count) times, at most \(allowed) are explained" : nil
        }
    }
}
