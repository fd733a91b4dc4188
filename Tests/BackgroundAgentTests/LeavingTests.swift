@testable import BackgroundLedger
import BackgroundNotices
import BackgroundScheduling
import Foundation
import Synchronization
import Testing

@testable import BackgroundAgent

/// Tests of an agent that exits between two events and can be started again. The tests check that no work is lost or late.
@Suite struct LeavingTests {
    private let bench: Bench
    private let activator = FakeActivator()

    init() throws {
        bench = try Bench()
        bench.activator = activator
        try bench.startAgent()
    }

    private var absence: AgentAbsence? { get throws { try bench.ledger.read { try $0.fact(.absence) } } }

    /// The time until which the agent is away; `nil` if the agent does not exit.
    private var until: Date?? {
        guard case .finished(.away(_, let until)) = bench.agent.lifetime else { return nil }
        return .some(until)
    }

    private func addNotification(after seconds: Double? = nil) throws {
        let content = NotificationContent(
            title: "Storm", subtitle: "", body: "", categoryIdentifier: "", threadIdentifier: "", userInfo: "{}", sound: nil,
            interruptionLevel: 1, badge: nil)
        try bench.ledger.write { transaction in
            _ = try transaction.addNotification("n", content, dueAt: seconds.map { bench.now + $0 }, now: bench.now)
        }
        try bench.turn()
    }

    @Test func `the agent exits until the next request is due`() throws {
        let request = try bench.submit(daily: true)
        try bench.pass(Lifetime.linger - 0.1)
        #expect(!bench.host.hasFinished)
        try bench.pass(0.2)
        let noon = try #require(request.occurrence)
        #expect(until == .some(noon))
        #expect(try absence?.until == noon)
        #expect(bench.agent.armActivation())
        #expect(activator.armed == [noon])
    }

    /// Work can arrive after the agent's last pass, before the agent exits.
    @Test func `the agent continues if work arrives before it exits`() throws {
        try bench.submit(daily: true)
        try bench.pass(Lifetime.linger + 0.1)
        #expect(bench.host.hasFinished)
        #expect(try !bench.agent.hasNews())
        // Another process submits the request.
        let request = RequestRecord(identifier: "now", kind: .appRefresh, earliestBegin: nil, submittedAt: bench.now)
        try Ledger(bench.ledger.directories).write { try $0.save(request) }
        #expect(try bench.agent.hasNews())
        bench.agent.continueWork()
        try bench.turn()
        #expect(try !bench.host.hasFinished && bench.live().map(\.identifier) == ["now"])
        #expect(try absence == nil)
    }

    @Test func `the agent does not exit if nothing can start it again`() throws {
        bench.activator = nil
        try bench.startAgent()
        try bench.submit(daily: true)
        try bench.pass(600)
        #expect(!bench.host.hasFinished)
    }

    @Test func `the agent does not exit shortly before a request is due`() throws {
        try bench.submit(after: 24)
        try bench.pass(20)
        #expect(!bench.host.hasFinished)
    }

    /// If the network or the power changes, the request can become due. Only a running agent is notified when the network or the
    /// power changes, so the agent must not exit.
    @Test(arguments: ["network", "power"])
    func `the agent does not exit while a request waits for a condition`(_ what: String) throws {
        try bench.hear(
            .conditions(DesktopConditions(isNetworkAvailable: false, isNetworkMetered: false, isOnExternalPower: false)))
        try bench.submit(kind: .processing, network: what == "network", power: what == "power")
        try bench.submit("later", after: 7_200)
        try bench.pass(3_600)
        #expect(!bench.host.hasFinished)
    }

    @Test func `the agent does not exit while a launch runs`() throws {
        try bench.settings { $0.processingBudget = 7_200 }
        try bench.submit(kind: .processing)
        try bench.turn()
        let launch = try bench.onlyLive()
        try bench.pass(1_000)
        #expect(!bench.host.hasFinished)
        try bench.submit("later", after: 7_200)
        try bench.end(launch, .completed)
        try bench.pass(Lifetime.linger + 0.1)
        #expect(bench.host.hasFinished)
    }

    @Test func `the agent does not exit while a notification is shown`() throws {
        try bench.submit(after: 90_000)
        try addNotification()
        try bench.hear(.presenter(.presented(identifier: "n", serverID: 7)))
        try bench.pass(3_600)
        #expect(!bench.host.hasFinished)
        try bench.hear(.presenter(.closed(identifier: "n", serverID: 7, .dismissed)))
        try bench.pass(Lifetime.linger + 0.1)
        #expect(bench.host.hasFinished)
    }

    @Test func `the agent does not exit while a notification waits for a server`() throws {
        try addNotification()
        try bench.hear(.presenter(.failed(identifier: "n", .noServer("there is none"))))
        try bench.pass(3_600)
        #expect(!bench.host.hasFinished)
    }

    @Test func `the agent exits until a notification is due`() throws {
        let due = bench.now + 5_000
        try addNotification(after: 5_000)
        try bench.pass(Lifetime.linger + 0.1)
        #expect(until == .some(due))
    }

    /// For example, if the user corrects an invalid configuration, the pause ends.
    @Test func `the agent does not exit while a file change can end a pause`() throws {
        try bench.settings { ($0.watchedFiles, $0.backoffBase) = (["/etc/hosts"], 7_200) }
        try bench.submit()
        try bench.turn()
        try bench.end(try bench.onlyLive(), nil, .signalled(11))
        try bench.pass(3_600)
        #expect(!bench.host.hasFinished)
    }

    @Test func `a refused activation is recorded and retried with growing pauses`() throws {
        try bench.submit(daily: true)
        activator.refusal = ActivationFailure("it is masked")
        try bench.pass(Lifetime.linger + 0.1)
        for pause in [10, 40, 160, 600, 600] as [Double] {
            #expect(!bench.agent.armActivation())
            try bench.turn()
            #expect(try bench.ledger.read { try $0.fact(.activationTrouble) } == "it is masked")
            #expect(try absence == nil)
            try bench.pass(pause - 1)
            #expect(!bench.host.hasFinished)
            try bench.pass(1 + Lifetime.linger + 0.1)
            #expect(bench.host.hasFinished)
        }
        activator.refusal = nil
        #expect(bench.agent.armActivation())
        #expect(try bench.ledger.read { try $0.fact(.activationTrouble) } == nil)
    }

    /// A transfer is kept for a limited time. If the agent exits and is started again as planned, this time is not prolonged. If
    /// the agent is started later than planned, this time is prolonged by the delay.
    @Test(arguments: [0.0, 5_000])
    func `only the late part of an absence prolongs the time for which a copy is kept`(_ late: Double) throws {
        try bench.submit(after: 7_200)
        try bench.pass(Lifetime.linger + 0.1)
        let until = try #require(try absence?.until)
        #expect(bench.agent.armActivation())
        // The agent keeps its copy of the file for a while after a failed upload, so that the app can retry the upload.
        let kept = bench.now + 20_000
        let id = try bench.download { $0.isSuspended = true }
        try bench.ledger.write {
            try $0.database.execute(
                sql: "UPDATE transfer SET kind = 'upload', bodyFile = 'upload-1', keptUntil = ? WHERE id = ?",
                arguments: [kept.timeIntervalSince1970, id])
        }
        try bench.stepUnseen(until.timeIntervalSince(bench.now) + late)
        try bench.startAgent()
        let shift = try #require(bench.transfer(id).keptUntil).timeIntervalSince(kept)
        #expect(abs(shift - late) < 1)
        #expect(try absence == nil)
    }
}

/// An activator that records the requested times and starts no agent.
final class FakeActivator: AgentActivator {
    private let state = Mutex<(armed: [Date?], folders: [[String]], refusal: ActivationFailure?)>(([], [], nil))

    var armed: [Date?] { state.withLock { $0.armed } }
    var refusal: ActivationFailure? {
        get { state.withLock { $0.refusal } }
        set { state.withLock { $0.refusal = newValue } }
    }

    var folders: [[String]] { state.withLock { $0.folders } }

    func arm(at instant: Date?, folders: [String]) throws(ActivationFailure) {
        let refusal = state.withLock { state in
            if state.refusal == nil {
                state.armed.append(instant)
                state.folders.append(folders)
            }
            return state.refusal
        }
        if let refusal { throw refusal }
    }
}
