import ProcessSupport
import BackgroundAgent
import BackgroundLedger
import BackgroundNotices
import BackgroundScheduling
import Foundation
import Synchronization
import TransferMachines

/// A desktop in virtual time: clocks, network, notification server, processes, a ledger in memory, and the real agent, which may
/// die and be followed by another. Only the effects are doubles. One thread at a time.
package final class SimulatedHost {
    package let clock: VirtualClock
    package let network: VirtualNetwork
    package let desktop: VirtualNotificationServer
    /// The ledger as the app sees it.
    package let ledger: Ledger
    package let directories: AppDirectories
    let conditions: ScriptedConditions
    let processes: VirtualProcesses
    private let inbox = AgentInbox()
    let files = SimulatedFiles()
    /// The home folder of the simulated user.
    package let folder: URL
    /// Everything that is noted goes to standard error, too: `SIMULATE_TRACE=1`.
    private let isLoud = ProcessInfo.processInfo.environment["SIMULATE_TRACE"] == "1"
    private let random: () -> Double
    private var host: AgentHost? { didSet { agentPresence.isThere.withLock { [isThere = host != nil] in $0 = isThere } } }
    private var agent: Agent? { host?.agent }
    private var agentView: Ledger?
    /// What keeps the agent's commits from becoming durable, and how it waits for that to be over.
    private var ledgerTrouble: StoreError?
    private var setback = AgentSetback()
    /// Commits that whoever would start an agent has looked at.
    private var seenCommits = -1
    /// Agents so far.
    package private(set) var agentsStarted = 0
    /// Moments at which something happened, so far.
    package private(set) var moments = 0
    /// Starts agents that leave with work left; `nil`: none does, and they stay.
    package var userManager: VirtualUserManager?
    /// Whether work that comes starts an agent that is not there.
    package var startsAgents = true
    /// What the agents noted, and the host's own events.
    package private(set) var transcript: [String] = []

    /// - Parameters:
    ///   - start: what the wall clock shows first.
    ///   - zone: where the person is.
    ///   - program: what launched processes do.
    ///   - random: numbers from 0 up to 1, for what the agent spreads.
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

    package func note(_ text: String) {
        // Enough for any one failure; a year of noons must not fill the memory.
        if transcript.count >= 20_000 { transcript.removeFirst(10_000) }
        let line = clock.date.formatted(.iso8601) + " " + text
        if isLoud { StandardError.write(line + "\n") }
        transcript.append(line)
    }

    // MARK: The agent

    package var hasAgent: Bool { agent != nil }

    /// An agent is there that has not yet taken over what earlier ones left.
    package var isAgentBeginning: Bool { setback.mustReconcile }

    /// The agent could not write, and waits to try again.
    package var isAgentInSetback: Bool { setback.until > clock.awake }

    /// Something came for the agent from another thread.
    func onWake(_ action: @escaping @Sendable () -> Void) { inbox.onWake(action) }

    /// Who is there, for other threads to ask.
    struct Presence: Sendable {
        fileprivate let processes: VirtualProcesses
        fileprivate let agent: AgentPresence

        var hasAgent: Bool { agent.isThere.withLock { $0 } }
        func isAlive(_ process: ProcessIdentity) -> Bool { processes.isAlive(process) }
    }

    var presence: Presence { Presence(processes: processes, agent: agentPresence) }
    private let agentPresence = AgentPresence()

    /// As the next login, or any verb, does.
    ///
    /// - Parameter commits: the agent dies at this commit of its own, counted from 1; `nil`: it lives.
    package func startAgent(dyingAt commits: Int? = nil, _ moment: LedgerCommitMoment = .committed) throws {
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
            disk: disk, random: random, log: { [unowned self] in note("agent: " + $0.line) },
            watchProcess: { processes.isAlive($0) }, post: tell)
        if let commits { dieAt(commits, moment, view, life) }
        view.setTrouble(ledgerTrouble)
        (host, agentView, self.life, setback) = (AgentHost(made, now: { clock.date }), view, life, AgentSetback())
        note("an agent starts")
        try reconcile()
    }

    private func reconcile() throws {
        guard let agent else { return }
        setback.mustReconcile = true
        try guarded { () throws(StoreError) in
            try agent.reconcile(version: "1")
            setback.mustReconcile = false
        }
        self.agent?.hear(.conditions(conditions.current))
    }

    /// A newer version takes over the ledger: the agent makes way, and none of this version can begin until it is back.
    package func useNewerVersion(_ isNewer: Bool) throws {
        note(isNewer ? "a newer version takes over" : "this version is back")
        isNewerInUse = isNewer
        try ledger.setSuperseded(isNewer)
        try run()
    }

    private var isNewerInUse = false

    /// The agent cannot write its ledger, for a reason that passes; `nil`: it can.
    package func troubleLedger(_ trouble: StoreError?) {
        ledgerTrouble = trouble
        agentView?.setTrouble(trouble)
    }

    private var life = AgentLife()

    private func dieAt(_ commits: Int, _ moment: LedgerCommitMoment, _ view: Ledger, _ life: AgentLife) {
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

    /// SIGKILL: what it held in memory is gone, and so are its connections and its notifications' buttons.
    package func killAgent() {
        guard agent != nil else { return }
        note("the agent is killed")
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

    /// SIGTERM: it stops what runs and leaves.
    package func stopAgent() throws {
        agent?.hear(.stopRequested)
        try run()
    }

    /// Tells the agent, if there is one.
    package func tell(_ event: AgentEvent) { agent?.hear(event) }

    /// What a dead agent throws is its death.
    private func guarded(_ body: () throws(StoreError) -> Void) throws {
        do throws(StoreError) {
            try body()
            setback.isOver()
        } catch {
            guard !life.isAlive || error.isPassing else { throw error }
            if life.isAlive {
                // As its process does: the parts are as they were, and what was heard is heard again.
                let pause = setback.count(now: clock.awake)
                note("the agent cannot write, and tries again after \(pause) s: \(error)")
                clock.schedule(after: pause) {}
            }
        }
        if agent != nil, !life.isAlive {
            note("the agent dies at a commit")
            discardAgent()
        }
    }

    // MARK: Running

    /// Until nothing more happens at this moment.
    package func run() throws {
        for _ in 0..<10_000 {
            if clock.fire() { continue }
            try startIfNeeded()
            guard let agent else { return }
            for event in inbox.take() { agent.hear(event) }
            let ends = processes.takeEnds()
            for (launch, end) in ends.launches { agent.hear(.launchEnded(launch, end)) }
            for process in ends.processes { agent.hear(.processEnded(process)) }
            guard setback.until <= clock.awake + 1e-9 else { return }
            if setback.mustReconcile {
                try reconcile()
                if setback.mustReconcile { return }
            }
            var hasTurned = false
            try guarded { () throws(StoreError) in hasTurned = try host?.turn() ?? false }
            if let host, host.hasFinished { try leave() } else if !hasTurned, host != nil { return }
        }
        throw Endless(transcript: transcript.suffix(40).joined(separator: "\n"))
    }

    /// Everything at this moment led to something else at this moment.
    struct Endless: Error, CustomStringConvertible {
        let transcript: String
        var description: String { "time stands still: one thing leads to another without end\n" + transcript }
    }

    private func leave() throws {
        guard agent?.armActivation() != false else {
            host?.goOn()
            return
        }
        note("the agent leaves")
        let madeWay = agent?.lifetime == .finished(.superseded)
        discardAgent()
        // As its process does: the program that is there by now goes on.
        if madeWay { try startAgent() }
    }

    private func startIfNeeded() throws {
        guard agent == nil else { return }
        // Whether or not what it starts can begin.
        let hasElapsed = userManager?.elapses(at: clock.date) ?? false
        guard startsAgents, !isNewerInUse, hasElapsed || seenCommits != ledger.commitCount else { return }
        seenCommits = ledger.commitCount
        if try hasElapsed || ledger.read({ try $0.hasUnfinishedWork() }) { try startAgent() }
    }

    /// Waking seconds until something happens by itself; `nil`: nothing does.
    package var untilNextMoment: Double? {
        // One that waits for its ledger has a timer for that, and looks at nothing else.
        let wake = (setback.until > clock.awake ? nil : host?.wake).map { max(0, $0.timeIntervalSince(clock.date)) }
        let activation = agent == nil ? userManager?.instant.map { max(0, $0.timeIntervalSince(clock.date)) } : nil
        return [wake, activation, clock.untilNextTimer].compactMap { $0 }.min()
    }

    /// Lets so many seconds pass, stopping at each moment at which something happens.
    package func pass(_ seconds: Double, until isEnough: () throws -> Bool = { false }) throws {
        try run()
        let end = clock.awake + seconds
        // A moment every four seconds is much; more is somebody who asks without a pause.
        var moments = 10_000 + Int(min(seconds, 1e9) / 4)
        while try !isEnough() {
            let left = end - clock.awake
            guard left > 1e-9 else { return }
            guard moments > 0 else { throw Endless(transcript: transcript.suffix(40).joined(separator: "\n")) }
            moments -= 1
            try step(atMost: left)
        }
    }

    /// To the next moment at which something happens, or so far.
    package func step(atMost seconds: Double) throws {
        moments += 1
        if let wake = host?.wake ?? userManager?.instant, wake > clock.date, setback.until <= clock.awake,
            wake.timeIntervalSince(clock.date) <= min(seconds, clock.untilNextTimer ?? .infinity)
        {
            // To the very moment: seconds added up would fall short of it by a little, again and again.
            clock.pass(to: wake)
        } else {
            clock.pass(min(seconds, max(untilNextMoment ?? seconds, 1e-6)))
        }
        try run()
    }

    // MARK: What happens to a host

    /// Launches whose process lives.
    package var livingProcesses: Set<Int64> { Set(processes.living.map(\.launch)) }

    /// Whether the process still lives, as its agent would find out.
    package func isAlive(_ process: ProcessIdentity) -> Bool { processes.isAlive(process) }

    /// Somebody sends SIGTERM to a process of the app.
    package func warnAProcess() { if let process = processes.living.first { processes.warn(process.launch) } }

    /// No process can be started: the app is being replaced, say.
    package func refuseLaunches(_ isRefusing: Bool) { processes.refuse(isRefusing) }

    /// The app's program is deleted, or there again.
    package func removeApp(_ isRemoved: Bool) { processes.remove(isRemoved) }

    /// It is switched off for so long: every process dies with it.
    package func switchOff(_ seconds: Double) throws {
        note("the host is off for \(Int(seconds)) s")
        killEverything()
        clock.sleep(seconds)
        network.cutConnections()
        try run()
    }

    /// The ledger comes back from a backup: whoever had it open starts afresh.
    package func restore(_ backup: Ledger.Backup) throws {
        note("the ledger comes from a backup")
        killEverything()
        try ledger.restore(backup)
    }

    private func killEverything() {
        killAgent()
        for process in processes.living { processes.kill(process.launch, by: .signalled(9)) }
        _ = processes.takeEnds()
    }

    /// The process of a launch ends by itself.
    package func endProcess(of launch: Int64) { processes.process(of: launch)?.exit() }

    /// One process of the app ends without a word.
    package func killAProcess(by end: ProcessEnd) {
        guard let process = processes.living.first else { return }
        note("the process of launch \(process.launch) is killed")
        processes.kill(process.launch, by: end)
    }

    package func change(_ change: (inout DesktopConditions) -> Void) throws {
        guard conditions.set(change) else { return }
        network.setUp(conditions.current.isNetworkAvailable)
        tell(.conditions(conditions.current))
        try run()
    }

    /// Its lid is closed for so long: its clock goes on and nothing else does; connections do not survive.
    package func suspend(_ seconds: Double) throws {
        note("the host sleeps for \(Int(seconds)) s")
        clock.sleep(seconds)
        network.cutConnections()
        tell(.timeChanged)
        tell(.resumed)
        try run()
    }

    /// Somebody sets the clock.
    package func stepClock(_ seconds: Double) throws {
        note("the clock is set by \(seconds) s")
        clock.step(seconds)
        tell(.timeChanged)
        userManager?.noteClock()
        try run()
    }

    /// The person travels.
    package func travel(to zone: TimeZone) throws {
        note("the zone becomes \(zone.identifier)")
        clock.set(zone)
        tell(.zoneChanged)
        userManager?.noteClock()
        try run()
    }
}
