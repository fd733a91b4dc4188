import ProcessSupport
@testable import BackgroundLedger
import BackgroundScheduling
import Foundation
import Synchronization
import Testing
import TransferMachines

@testable import BackgroundAgent

/// Tests of failed commits. A failed commit does not change the agent. After a failed commit, the agent performs no effects, and
/// handles the same events again.
@Suite struct FailedCommitTests {
    private let folder = FileManager.default.temporaryDirectory.appendingPathComponent("agent-" + UUID().uuidString)
    private let ledger: Ledger
    private let launcher = FakeLauncher()
    private let transport = FakeTransport()
    private let clocks: Clocks
    private let agent: Agent
    private let isDiskFull = Switch()

    /// A switch that makes every commit fail.
    private final class Switch: Sendable {
        private let state = Mutex(false)
        var isOn: Bool {
            get { state.withLock { $0 } }
            set { state.withLock { $0 = newValue } }
        }
    }

    init() throws {
        let clocks = Clocks(now: Bench.start, zone: try #require(TimeZone(identifier: "Europe/Berlin")))
        self.clocks = clocks
        ledger = try Ledger(inMemory: AppDirectories(appIdentifier: "app", environment: ["HOME": folder.path]))
        let view = ledger.anotherView()
        let posted = PostedEvents()
        agent = Agent(
            ledger: view, launcher: launcher,
            ports: AgentPorts(
                transport: transport, presenter: FakePresenter(), conditions: FakeConditions(), sessionChanged: { _ in }),
            host: HostEnvironment(
                now: { clocks.value.now }, monotonic: { clocks.value.awake }, slept: { clocks.value.slept },
                zone: { clocks.value.zone }),
            disk: DiskWorker(hasThread: false), watchProcess: { _ in true }, post: { posted.add($0) })
        try agent.reconcile(version: "1")
        agent.receive(.conditions(FakeConditions().current))
        _ = try agent.turn()
        view.setKillHook { [isDiskFull] in $0 == .committing && isDiskFull.isOn }
    }

    private func tryToTurn(_ count: Int = 3) {
        for _ in 0..<count { #expect(throws: StoreError.self) { try agent.turn() } }
    }

    @Test func `a due request is launched once after failed commits`() throws {
        isDiskFull.isOn = true
        try ledger.write {
            try $0.save(RequestRecord(identifier: "noon", kind: .appRefresh, earliestBegin: nil, submittedAt: Bench.start))
        }
        tryToTurn()
        #expect(launcher.started.isEmpty, "nothing is performed that is not committed")
        isDiskFull.isOn = false
        _ = try agent.turn()
        #expect(launcher.started.count == 1)
    }

    @Test func `the end of a launch is recorded after failed commits`() throws {
        try ledger.write {
            try $0.save(RequestRecord(identifier: "noon", kind: .appRefresh, earliestBegin: nil, submittedAt: Bench.start))
        }
        _ = try agent.turn()
        let launch = try #require(launcher.started.first)
        try ledger.write { try $0.setResult(.completed, detail: nil, ofLaunch: launch) }
        isDiskFull.isOn = true
        launcher.living = []
        agent.receive(.launchEnded(launch, .exited(0)))
        tryToTurn()
        #expect(try ledger.read { try $0.launch(launch)?.endedAt } == nil)
        #expect(launcher.forgotten.isEmpty)
        isDiskFull.isOn = false
        _ = try agent.turn()
        #expect(try ledger.read { try $0.launch(launch)?.outcome } == .completed)
        #expect(launcher.forgotten == [launch])
    }

    /// After a failed commit, the received bytes are not lost, and are counted only once.
    @Test(arguments: [WireFailure?.none, .connectionLost])
    func `the end of a download is recorded after failed commits`(_ failure: WireFailure?) throws {
        let id = try ledger.write { transaction in
            var record = TransferRecord(
                session: "s", key: "k", kind: .download, method: "GET", url: "http://127.0.0.1/k", headers: [], now: Bench.start)
            record.isAdopted = true
            return try #require(try transaction.insert(record).id)
        }
        _ = try agent.turn()
        let attempt = try #require(transport.started.last)
        let head = ResponseHead(status: 200, headers: [HeaderField("ETag", "\"v1\"")], url: attempt.request.url)
        #expect(attempt.sink.receive(head: head))
        #expect(Array("sunny".utf8).withUnsafeBytes { attempt.sink.write($0) })
        isDiskFull.isOn = true
        let end = WireEnd(head: head, failure: failure, bytesSent: 0, bytesReceived: 5)
        agent.receive(.transport(.ended(attempt.id, end)))
        tryToTurn()
        #expect(try ledger.read { try $0.transfer(id)?.state } == .running)
        isDiskFull.isOn = false
        _ = try agent.turn()
        let row = try #require(try ledger.read { try $0.transfer(id) })
        #expect(row.bytesOnWire == 5)
        if failure == nil {
            #expect(row.state == .completed)
            let file = try #require(row.wholeFile(in: ledger.directories.spool))
            #expect(try String(contentsOf: file, encoding: .utf8) == "sunny")
        } else {
            #expect(row.state == .waiting)
            #expect(row.partial?.durableBytes == 5)
            #expect(row.fruitlessAttempts == 0)
        }
    }

    @Test func `a stop takes effect after a failed commit`() throws {
        isDiskFull.isOn = true
        try ledger.write { try $0.setFact(.settings, AgentSettings()) }
        try ledger.write {
            try $0.save(RequestRecord(identifier: "noon", kind: .appRefresh, earliestBegin: nil, submittedAt: Bench.start))
        }
        agent.receive(.stopRequested)
        // A stop alone writes nothing to the ledger, so this run of the loop may succeed. A launch cannot start before a commit
        // succeeds.
        _ = try? agent.turn()
        isDiskFull.isOn = false
        _ = try agent.turn()
        #expect(agent.lifetime.hasEnded)
        #expect(launcher.started.isEmpty)
    }
}
