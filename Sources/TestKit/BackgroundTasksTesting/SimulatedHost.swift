import ProcessSupport
import BackgroundAgent
import BackgroundLedger
import BackgroundNotices
import BackgroundScheduling
import Foundation
import Synchronization
import TransferMachines

/// A desktop in virtual time with clocks, network, notification server, processes, a ledger in memory, and the real agent. The
/// agent can die and be replaced. The desktop that it uses is a test double. Call a host from one thread at a time.
package final class SimulatedHost {
    package let clock: VirtualClock
    package let network: VirtualNetwork
    package let desktop: VirtualNotificationServer
    /// The ledger, as the app accesses it.
    package let ledger: Ledger
    package let directories: AppDirectories
    let conditions: ScriptedConditions
    let processes: VirtualProcesses
    private let inbox = AgentInbox()
    let files = SimulatedFiles()
    /// The home folder of the simulated user.
    package let folder: URL
    /// With `SIMULATE_TRACE=1`, all notes are also written to standard error.
    private let isLoud = ProcessInfo.processInfo.environment["SIMULATE_TRACE"] == "1"
    private let random: () -> Double
    private var host: AgentHost? { didSet { agentPresence.isThere.withLock { [isThere = host != nil] in $0 = isThere } } }
    var agent: Agent? { host?.agent }
    private var agentView: Ledger?
    /// The error with which the agent's commits fail, and the state of its retries.
    private var ledgerTrouble: StoreError?
    private var setback = AgentSetback()
    /// The number of commits when the host last decided whether to start an agent.
    private var seenCommits = -1
    /// The number of agents started so far.
    package private(set) var agentsStarted = 0
    /// The number of points in virtual time so far at which an event occurred.
    package private(set) var moments = 0
    /// The user manager that starts agents which exited with unfinished work; `nil` if agents keep running.
    package var userManager: VirtualUserManager?
    /// `true` if new work starts an agent when none is running.
    package var startsAgents = true
    /// The notes of the agents and the events of the host.
    package private(set) var transcript: [String] = []

    /// - Parameters:
    ///   - start: The first time of the wall clock.
    ///   - zone: The time zone of the user.
    ///   - program: The behaviour of launched processes.
    ///   - random: A function that returns numbers from 0 up to 1. The agent uses these random numbers to spread work over time.
    package init(
        start: Date, zone: TimeZone, appIdentifier: String = "app", program: any VirtualProgram, random: @escaping () -> Double
    ) throws {
        folder = try VirtualFolder.make()
        self.random = random
        clock = VirtualClock(wall: start, zone: zone)
        network = VirtualNetwork(clock: clock)
        desktop = VirtualNotificationServer(clock: clock)
        conditions = ScriptedConditions(
            DesktopConditions(isNetworkAvailable: true, isNetworkMetered: false, isOnExternalPower: true))
        let inbox = inbox
        processes = VirtualProcesses(program: program) { inbox.wake() }
        directories = AppDirectories(appIdentifier: appIdentifier, environment: ["HOME": folder.path])
        ledger = try Ledger(inMemory: directories)
        try ledger.write {
            try $0.setFact(.app, AppRecord(executable: "/bin/false", arguments: [], version: "1", displayName: "App"))
        }
    }

    deinit { try? FileManager.default.removeItem(at: folder) }

    package func log(_ text: String) {
        // A limit of 20,000 notes is enough to explain a failure.
        if transcript.count >= 20_000 { transcript.removeFirst(10_000) }
        let line = clock.date.formatted(.iso8601) + " " + text
        if isLoud { StandardError.write(line + "\n") }
        transcript.append(line)
    }

    // MARK: The agent

    package var hasAgent: Bool { agent != nil }

    /// `true` if the running agent has not yet taken over the unfinished work of earlier agents.
    package var isAgentBeginning: Bool { setback.mustReconcile }

    /// `true` if the agent could not write to its ledger and waits for its next try.
    package var isAgentInSetback: Bool { setback.until > clock.awake }

    /// Calls the action when another thread adds an event for the agent.
    func onWake(_ action: @escaping @Sendable () -> Void) { inbox.onWake(action) }

    /// The running agent and processes, readable from other threads.
    struct Presence: Sendable {
        fileprivate let processes: VirtualProcesses
        fileprivate let agent: AgentPresence

        var hasAgent: Bool { agent.isThere.withLock { $0 } }
        func isAlive(_ process: ProcessIdentity) -> Bool { processes.isAlive(process) }
    }

    var presence: Presence { Presence(processes: processes, agent: agentPresence) }
    private let agentPresence = AgentPresence()

    /// Starts an agent, as the next login does.
    ///
    /// - Parameter commits: The number of the commit at which the agent dies, counted from 1; `nil` if the agent does not die.
    package func startAgent(dyingAt commits: Int? = nil, _ moment: LedgerCommitStage = .committed) throws {
        guard agent == nil, !isNewerInUse else { return }
        agentsStarted += 1
        let view = ledger.anotherView()
        let life = AgentLife()
        let inbox = inbox
        let tell: @Sendable (AgentEvent) -> Void = { event in if life.isAlive { inbox.add(event) } }
        inbox.clear()
        let disk = DiskWorker(hasThread: false, calls: files.calls)
        network.connect { tell(.transport($0)) }
        network.follow(with: DiskFollower(disk, clock: clock, life: life))
        desktop.connect { tell(.presenter($0)) }
        let (clock, processes) = (clock, processes)
        let made = Agent(
            ledger: view, launcher: processes,
            ports: AgentPorts(
                transport: network, presenter: desktop, conditions: conditions, activator: userManager, sessionChanged: { _ in }),
            host: HostEnvironment(
                now: { clock.date }, monotonic: { clock.awake }, slept: { clock.slept }, zone: { clock.timeZone }),
            disk: disk, random: random, log: { [unowned self] in log("agent: " + $0.line) },
            watchProcess: { processes.isAlive($0) }, post: tell)
        if let commits { dieAt(commits, moment, view, life) }
        view.setTrouble(ledgerTrouble)
        (host, agentView, self.life, setback) = (AgentHost(made, now: { clock.date }), view, life, AgentSetback())
        log("an agent starts")
        try reconcile()
    }

    private func reconcile() throws {
        guard let agent else { return }
        setback.mustReconcile = true
        try guarded { () throws(StoreError) in
            try agent.reconcile(version: "1")
            setback.mustReconcile = false
        }
        self.agent?.receive(.conditions(conditions.current))
    }

    /// Simulates a newer version that migrates the ledger. The agent exits, and no agent starts until the newer version is
    /// removed.
    package func useNewerVersion(_ isNewer: Bool) throws {
        log(isNewer ? "a newer version of the app runs" : "the current version of the app runs again")
        isNewerInUse = isNewer
        try ledger.setSuperseded(isNewer)
        try run()
    }

    private var isNewerInUse = false

    /// Makes the agent's commits fail with a temporary error. If `trouble` is `nil`, commits succeed again.
    package func troubleLedger(_ trouble: StoreError?) {
        ledgerTrouble = trouble
        agentView?.setTrouble(trouble)
    }

    private var life = AgentLife()

    private func dieAt(_ commits: Int, _ moment: LedgerCommitStage, _ view: Ledger, _ life: AgentLife) {
        let count = Mutex(0)
        view.setKillHook { at in
            guard life.isAlive else { return true }
            guard at == moment else { return false }
            let number = count.withLock { count in
                count += 1
                return count
            }
            guard number >= commits else { return false }
            life.end()
            return true
        }
    }

    /// Kills the agent as with SIGKILL. The memory and the connections of the agent are lost, and the buttons of its
    /// notifications do not work any more.
    package func killAgent() {
        guard agent != nil else { return }
        log("the agent is killed")
        discardAgent()
    }

    private func discardAgent() {
        life.end()
        agentView?.setKillHook { _ in true }
        (host, agentView) = (nil, nil)
        seenCommits = ledger.commitCount
        inbox.clear()
        network.connect { _ in }
        desktop.connect { _ in }
        desktop.senderLeft()
    }

    /// Stops the agent as with SIGTERM. The agent stops all running work and exits.
    package func stopAgent() throws {
        agent?.receive(.stopRequested)
        try run()
    }

    /// Sends an event to the agent, if an agent is running.
    package func send(_ event: AgentEvent) { agent?.receive(event) }

    /// Runs `body` for the agent. If `body` kills the agent, the error is treated as the death of the agent.
    private func guarded(_ body: () throws(StoreError) -> Void) throws {
        do throws(StoreError) {
            try body()
            setback.isOver()
        } catch {
            guard !life.isAlive || error.isPassing else { throw error }
            if life.isAlive {
                // After a failed commit, the agent keeps the state of its parts, and handles the events again.
                let pause = setback.count(now: clock.awake)
                log("the agent cannot write, and tries again after \(pause) s: \(error)")
                clock.schedule(after: pause) {}
            }
        }
        if agent != nil, !life.isAlive {
            log("the agent is killed at a commit")
            discardAgent()
        }
    }

    // MARK: Running

    /// Handles all events and timers that are due now. Virtual time does not pass.
    package func run() throws {
        for _ in 0..<10_000 {
            if clock.fire() { continue }
            try startIfNeeded()
            guard let agent else { return }
            for event in inbox.drain() { agent.receive(event) }
            let ends = processes.drainEnds()
            for (launch, end) in ends.launches { agent.receive(.launchEnded(launch, end)) }
            for process in ends.processes { agent.receive(.processEnded(process)) }
            guard setback.until <= clock.awake + 1e-9 else { return }
            if setback.mustReconcile {
                try reconcile()
                if setback.mustReconcile { return }
            }
            var hasTurned = false
            try guarded { () throws(StoreError) in hasTurned = try host?.turn() ?? false }
            if let host, host.hasFinished { try exitAgent() } else if !hasTurned, host != nil { return }
        }
        throw Endless(transcript: transcript.suffix(40).joined(separator: "\n"))
    }

    /// The error for events that cause each other without end at one virtual time.
    struct Endless: Error, CustomStringConvertible {
        let transcript: String
        var description: String { "virtual time does not advance, because events cause each other without end\n" + transcript }
    }

    private func exitAgent() throws {
        guard agent?.armActivation() != false else {
            host?.continueWork()
            return
        }
        log("the agent leaves")
        let madeWay = agent?.lifetime == .finished(.superseded)
        discardAgent()
        // The agent starts again, like a real process that restarts with the newly installed program.
        if madeWay { try startAgent() }
    }

    private func startIfNeeded() throws {
        guard agent == nil else { return }
        // The timer is checked first, because an elapsed timer is consumed even if no agent can start.
        let hasElapsed = userManager?.elapses(at: clock.date) ?? false
        guard startsAgents, !isNewerInUse, hasElapsed || seenCommits != ledger.commitCount else { return }
        seenCommits = ledger.commitCount
        if try hasElapsed || ledger.read({ try $0.hasUnfinishedWork() }) { try startAgent() }
    }

    /// The seconds until the next event, without time in sleep; `nil` if the passing of time alone causes no event.
    package var untilNextEvent: Double? {
        // An agent that waits for its ledger has a timer for the next try, and does not handle other events.
        let wake = (setback.until > clock.awake ? nil : host?.wake).map { max(0, $0.timeIntervalSince(clock.date)) }
        let activation = agent == nil ? userManager?.instant.map { max(0, $0.timeIntervalSince(clock.date)) } : nil
        return [wake, activation, clock.untilNextTimer].compactMap { $0 }.min()
    }

    /// Lets a number of seconds pass, and handles each event at its time.
    package func pass(_ seconds: Double, until isEnough: () throws -> Bool = { false }) throws {
        try run()
        let end = clock.awake + seconds
        // The limit allows one step every four seconds. If more steps are necessary, some code polls without a pause.
        var moments = 10_000 + Int(min(seconds, 1e9) / 4)
        while try !isEnough() {
            let left = end - clock.awake
            guard left > 1e-9 else { return }
            guard moments > 0 else { throw Endless(transcript: transcript.suffix(40).joined(separator: "\n")) }
            moments -= 1
            try step(atMost: left)
        }
    }

    /// Lets time pass until the next event, but at most `seconds`.
    package func step(atMost seconds: Double) throws {
        moments += 1
        if let wake = host?.wake ?? userManager?.instant, wake > clock.date, setback.until <= clock.awake,
            wake.timeIntervalSince(clock.date) <= min(seconds, clock.untilNextTimer ?? .infinity)
        {
            // The clock is set to the exact time, because a sum of rounded seconds would be slightly too early.
            clock.pass(to: wake)
        } else {
            clock.pass(min(seconds, max(untilNextEvent ?? seconds, 1e-6)))
        }
        try run()
    }

    // MARK: Events of the host

    /// The launches whose process is alive.
    package var livingProcesses: Set<Int64> { Set(processes.living.map(\.launch)) }

    /// Returns whether the process is running, like the agent's own check.
    package func isAlive(_ process: ProcessIdentity) -> Bool { processes.isAlive(process) }

    /// Sends SIGTERM to a process of the app.
    package func warnAProcess() { if let process = processes.living.first { processes.warn(process.launch) } }

    /// Sets whether processes cannot be started, for example because the app is being replaced.
    package func refuseLaunches(_ isRefusing: Bool) { processes.refuse(isRefusing) }

    /// Deletes the app's program, or restores it.
    package func removeApp(_ isRemoved: Bool) { processes.remove(isRemoved) }

    /// Switches the host off for a number of seconds. All processes die.
    package func switchOff(_ seconds: Double) throws {
        log("the host is off for \(Int(seconds)) s")
        killEverything()
        clock.sleep(seconds)
        network.cutConnections()
        try run()
    }

    /// Restores the ledger from a backup. All processes die first.
    package func restore(_ backup: Ledger.Backup) throws {
        log("the ledger is restored from a backup")
        killEverything()
        try ledger.restore(backup)
    }

    private func killEverything() {
        killAgent()
        for process in processes.living { processes.kill(process.launch, by: .signalled(9)) }
        _ = processes.drainEnds()
    }

    /// Ends the process of a launch, as if the process exited by itself.
    package func endProcess(of launch: Int64) { processes.process(of: launch)?.exit() }

    /// Kills a process of the app.
    package func killAProcess(by end: ProcessEnd) {
        guard let process = processes.living.first else { return }
        log("the process of launch \(process.launch) is killed")
        processes.kill(process.launch, by: end)
    }

    package func change(_ change: (inout DesktopConditions) -> Void) throws {
        guard conditions.set(change) else { return }
        network.setUp(conditions.current.isNetworkAvailable)
        send(.conditions(conditions.current))
        try run()
    }

    /// Simulates a closed lid. The wall clock continues, but no code runs, and connections break.
    package func suspend(_ seconds: Double) throws {
        log("the host sleeps for \(Int(seconds)) s")
        clock.sleep(seconds)
        network.cutConnections()
        send(.timeChanged)
        send(.resumed)
        try run()
    }

    /// Changes the wall clock.
    package func stepClock(_ seconds: Double) throws {
        log("the clock is set by \(seconds) s")
        clock.step(seconds)
        send(.timeChanged)
        userManager?.handleClockChange()
        try run()
    }

    /// Changes the time zone.
    package func travel(to zone: TimeZone) throws {
        log("the zone becomes \(zone.identifier)")
        clock.set(zone)
        send(.zoneChanged)
        userManager?.handleClockChange()
        try run()
    }
}
