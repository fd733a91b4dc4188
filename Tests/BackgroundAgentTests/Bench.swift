import ProcessSupport
@testable import BackgroundLedger
import BackgroundNotices
import BackgroundScheduling
import Foundation
import Testing
import TransferMachines

@testable import BackgroundAgent

/// The environment of one app in virtual time: a ledger on disk, simulated processes, a simulated desktop, and an agent. The
/// agent can die, and another agent can be started.
final class Bench {
    let folder: URL
    let ledger: Ledger
    let launcher = FakeLauncher()
    var transport = FakeTransport()
    var presenter = FakePresenter()
    let conditions = FakeConditions()
    /// The activator that the test passes to later agents; `nil` if no service starts an agent that has exited.
    var activator: FakeActivator?
    /// The wake clock that the test passes to later agents; `nil` if the machine cannot be woken.
    var wakeClock: FakeWakeClock?
    var sleep: FakeSleepManager?
    /// Events from other threads to the agent.
    let posted = PostedEvents()
    /// Processes that have already ended when `watchProcess` is called.
    var gone: Set<ProcessIdentity> = []
    private(set) var watched: [ProcessIdentity] = []
    private(set) var host: AgentHost!
    var agent: Agent { host.agent }

    /// The worker that hashes and syncs files. This worker has no thread, and works only when the test calls the worker. Tests of
    /// delayed results use a worker with a thread.
    var disk = DiskWorker(hasThread: false)
    private let clocks: Clocks

    /// The time of the host's clock. ``step(_:)`` changes this clock, but no time passes.
    var now: Date { clocks.value.now }
    var zone: TimeZone {
        get { clocks.value.zone }
        set { clocks.change { $0.zone = newValue } }
    }

    /// 2025-06-10 08:00 UTC, which is 10:00 in Berlin.
    static let start = Date(timeIntervalSince1970: 1_749_542_400)

    init(zone name: String = "Europe/Berlin") throws {
        folder = FileManager.default.temporaryDirectory.appendingPathComponent("agent-" + UUID().uuidString)
        clocks = Clocks(now: Self.start, zone: try #require(TimeZone(identifier: name)))
        ledger = try Ledger(
            AppDirectories(
                appIdentifier: "app",
                environment: ["HOME": folder.path, "XDG_STATE_HOME": folder.appendingPathComponent("state").path]))
        try ledger.write {
            try $0.setFact(.app, AppRecord(executable: "/bin/false", arguments: [], version: "1", displayName: "App"))
        }
        try startAgent()
    }

    deinit { try? FileManager.default.removeItem(at: folder) }

    // MARK: The agent

    /// Starts another agent on the same ledger. The earlier agent is treated as killed, together with its transport and its
    /// presenter.
    func startAgent(turning: Bool = true, knowing: Bool = true) throws {
        transport = FakeTransport()
        presenter = FakePresenter()
        let clocks = clocks
        let agent = Agent(
            ledger: ledger, launcher: launcher,
            ports: AgentPorts(
                transport: transport, presenter: presenter, conditions: conditions, activator: activator, wakeClock: wakeClock,
                sleepManager: sleep, sessionChanged: { _ in }
            ),
            host: HostEnvironment(
                now: { clocks.value.now }, monotonic: { clocks.value.awake }, slept: { clocks.value.slept },
                zone: { clocks.value.zone }),
            disk: disk,
            watchProcess: { [unowned self] process in
                watched.append(process)
                return !gone.contains(process)
            }, post: { [posted] in posted.add($0) })
        host = AgentHost(agent, now: { clocks.value.now })
        try agent.reconcile(version: "1")
        if knowing { agent.receive(.conditions(conditions.current)) }
        if turning { try turn() }
    }

    /// Runs the agent's loop once, even if the agent requested a later time. If the disk worker has no thread, this method also
    /// handles all posted events.
    @discardableResult
    func turn() throws -> Date? {
        let wake = try agent.turn()
        guard !disk.hasThread, posted.hasAny else { return wake }
        while let event = posted.take() { agent.receive(event) }
        return try turn()
    }

    func hear(_ events: AgentEvent...) throws {
        for event in events { agent.receive(event) }
        try turn()
    }

    /// Lets time pass. The agent's loop runs at the times that the agent requested.
    func pass(_ seconds: Double) throws {
        let end = now + seconds
        for _ in 0..<10_000 {
            guard let wake = try turn(), wake <= end, !host.hasFinished else {
                move(to: end)
                try turn()
                return
            }
            // If the wake time is not in the future, the test would loop forever.
            try #require(wake > now, "asked to be woken in the past")
            move(to: wake)
        }
        Issue.record("woken without end")
    }

    private func move(to date: Date) {
        clocks.change { clocks in
            clocks.awake += date.timeIntervalSince(clocks.now)
            clocks.now = date
        }
    }

    /// Suspends the machine. During the sleep, the host's clock continues, but the clock that counts only the time awake stops.
    /// After the sleep, the timer fires before the system bus reports the end of the sleep.
    func suspend(_ seconds: Double) throws {
        clocks.change { clocks in
            clocks.now += seconds
            clocks.slept += seconds
        }
        try hear(.timeChanged)
    }

    /// Moves the clock forward or back by a number of seconds, and notifies the agent.
    func step(_ seconds: Double) throws {
        clocks.change { $0.now += seconds }
        try hear(.timeChanged)
    }

    /// Sets the clock while no agent is running.
    func stepUnseen(_ seconds: Double) throws { clocks.change { $0.now += seconds } }

    // MARK: Actions of the app

    @discardableResult
    func submit(
        _ identifier: String = "noon", after seconds: Double? = nil, daily: Bool = false, missed: MissedPolicy = .once,
        spread: Double = 0, in launch: Int64? = nil, kind: LaunchKind = .appRefresh, network: Bool = false, power: Bool = false,
        wakes: Bool = false
    ) throws -> RequestRecord {
        let request = RequestRecord(
            identifier: identifier, kind: kind, earliestBegin: seconds.map { now + $0 },
            recurrence: daily ? .daily(.noon) : nil, spread: spread, missed: missed, requiresNetwork: network,
            requiresExternalPower: power, wakesSystem: wakes, submittedAt: now)
        return try ledger.write { try $0.submit(request, in: launch, now: now, zone: zone) }
    }

    /// Adds continued processing that the user started in the process `host`.
    @discardableResult
    func begin(_ identifier: String, host: ProcessIdentity) throws -> RequestRecord {
        let request = RequestRecord(
            identifier: identifier, kind: .continuedProcessing, title: "Export", subtitle: "12 photos", host: host,
            submittedAt: now)
        try ledger.write { try $0.save(request) }
        try turn()
        return request
    }

    func settings(_ change: (inout AgentSettings) -> Void) throws {
        var settings = AgentSettings()
        change(&settings)
        try ledger.write { try $0.setFact(.settings, settings) }
    }

    /// Ends the process of a launch, with or without a result from the app.
    func end(_ launch: Int64, _ result: LaunchOutcome? = nil, _ end: ProcessEnd = .exited(0)) throws {
        if let result { try ledger.write { try $0.setResult(result, detail: nil, ofLaunch: launch) } }
        launcher.living.remove(launch)
        try hear(.launchEnded(launch, end))
    }

    /// Changes the row of a launch directly, without an event.
    func alter(launch id: Int64, _ assignments: String) throws {
        try ledger.write { try $0.database.run(sql: "UPDATE launch SET \(assignments) WHERE id = \(id)") }
    }

    // MARK: State

    func request(_ identifier: String = "noon") throws -> RequestRecord? { try ledger.read { try $0.request(identifier) } }
    func launch(_ id: Int64) throws -> LaunchRecord { try #require(try ledger.read { try $0.launch(id) }) }
    func live() throws -> [LaunchRecord] { try ledger.read { try $0.liveLaunches() } }
    func history() throws -> [LaunchRecord] { try ledger.read { try $0.history(limit: 1_000) } }
    func transfer(_ id: Int64) throws -> TransferRecord { try #require(try ledger.read { try $0.transfer(id) }) }

    /// Returns the only launch that is running.
    func onlyLive() throws -> Int64 {
        let live = try live()
        try #require(live.count == 1, "\(live.count) launches run")
        return try #require(live.first?.id)
    }

    func instant(_ text: String) throws -> Date {
        try Date(text, strategy: Date.ISO8601FormatStyle(includingFractionalSeconds: false))
    }
}
