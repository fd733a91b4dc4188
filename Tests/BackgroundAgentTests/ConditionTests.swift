@testable import BackgroundLedger
import BackgroundScheduling
import Foundation
import GRDB
import Testing

@testable import BackgroundAgent

/// Tests of conditions that change during launches, and of the order of launches.
@Suite struct ConditionTests {
    private let bench: Bench

    init() throws { bench = try Bench() }

    private func change(_ change: (inout DesktopConditions) -> Void) throws {
        bench.conditions.set(change)
        try bench.hear(.conditions(bench.conditions.current))
    }

    @Test func `a launch that needs the network expires when the network is lost`() throws {
        try change { _ in }
        try bench.submit("p", kind: .processing, network: true)
        try bench.turn()
        let id = try bench.onlyLive()
        try change { $0.isNetworkAvailable = false }
        #expect(bench.launcher.warned == [id])
        #expect(try bench.launch(id).stopReason == .conditionLost)
        try bench.end(id, .expired)
        #expect(try bench.launch(id).outcome == .expired)
        // The request is not complete, and waits for the network. The interrupted launch does not count as a failure.
        let waiting = try #require(try bench.request("p"))
        #expect(waiting.failures == 0 && waiting.backoffUntil == nil)
        try bench.pass(3600)
        #expect(try bench.live().isEmpty)
        try change { $0.isNetworkAvailable = true }
        let again = try bench.onlyLive()
        #expect(try bench.launch(again).generation == 1)
        try bench.end(again, .completed)
        #expect(try bench.request("p") == nil, "the request is removed, because its launch completed")
    }

    /// The handler has submitted the next request, or has deleted the request. In both cases the agent does not restore the old
    /// request.
    @Test(arguments: [true, false])
    func `changes by the handler are kept if its launch loses the network`(_ submits: Bool) throws {
        try change { _ in }
        try bench.submit("p", kind: .processing, network: true)
        try bench.turn()
        let id = try bench.onlyLive()
        if submits {
            try bench.submit("p", after: 86_400, kind: .processing, network: true)
        } else {
            try bench.ledger.write { try $0.deleteRequest("p") }
        }
        try change { $0.isNetworkAvailable = false }
        try bench.end(id, .expired)
        try change { $0.isNetworkAvailable = true }
        #expect(try bench.live().isEmpty)
        #expect(try (bench.request("p") != nil) == submits)
    }

    @Test func `a launch that needs external power expires when the power is lost`() throws {
        try bench.submit("p", kind: .processing, power: true)
        try bench.turn()
        let id = try bench.onlyLive()
        try change { $0.isNetworkAvailable = false }
        #expect(bench.launcher.warned.isEmpty, "the launch does not require a network")
        try change { $0.isOnExternalPower = false }
        #expect(bench.launcher.warned == [id])
        try bench.pass(5)
        #expect(bench.launcher.killed == [id], "the launch is killed after the grace time")
    }

    @Test func `low power mode does not end a running launch`() throws {
        try bench.submit("p", kind: .processing)
        try bench.turn()
        try change {
            $0.isOnExternalPower = false
            $0.isLowPowerMode = true
        }
        #expect(bench.launcher.warned.isEmpty)
    }

    @Test func `low power mode delays a refresh until the mode ends`() throws {
        try change {
            $0.isOnExternalPower = false
            $0.isLowPowerMode = true
        }
        try bench.submit()
        try bench.pass(3_600)
        #expect(bench.launcher.started.isEmpty)
        try change { $0.isLowPowerMode = false }
        #expect(try bench.launch(bench.onlyLive()).woke == WakeCause.saving.rawValue)
    }

    @Test func `a launch waits up to 10 seconds for the first report of its conditions`() throws {
        try bench.submit("p", kind: .processing, power: true)
        try bench.startAgent(knowing: false)
        #expect(bench.launcher.started.isEmpty)
        try change { $0.isOnExternalPower = false }
        #expect(bench.launcher.started.isEmpty)
        // If the desktop reports no conditions, the agent uses the conditions that it read at its start.
        bench.conditions.set { $0.isOnExternalPower = true }
        try bench.startAgent(knowing: false)
        try bench.pass(9.9)
        #expect(bench.launcher.started.isEmpty)
        try bench.pass(0.1)
        #expect(bench.launcher.started.count == 1)
    }

    // MARK: Sleep

    @Test func `a refresh waits for the network after a sleep`() throws {
        try change { _ in }
        try bench.submit(daily: true)
        try bench.turn()
        // The machine sleeps for two hours, from before noon until after noon. NetworkManager reports "asleep" until the network
        // is connected again.
        bench.conditions.set { $0.isNetworkAvailable = false }
        try bench.suspend(2 * 3600 + 60)
        #expect(bench.launcher.started.isEmpty)
        try bench.pass(7)
        #expect(bench.launcher.started.isEmpty)
        try change { $0.isNetworkAvailable = true }
        let launch = try bench.launch(bench.onlyLive())
        #expect(launch.woke == WakeCause.resumed.rawValue)
        #expect(try launch.servedOccurrence == bench.instant("2025-06-10T10:00:00Z"))
        #expect(launch.askedBegin == launch.servedOccurrence)
    }

    @Test func `a refresh waits at most 30 seconds for the network after a sleep`() throws {
        try change { _ in }
        try bench.submit(daily: true)
        try bench.turn()
        bench.conditions.set { $0.isNetworkAvailable = false }
        try bench.suspend(2 * 3600)
        try bench.pass(29)
        #expect(bench.launcher.started.isEmpty)
        try bench.pass(1)
        #expect(bench.launcher.started.count == 1)
    }

    // MARK: Order of launches

    @Test func `launches that are due at the same time start one second apart`() throws {
        for number in 0..<10 { try bench.submit("r\(number)", after: 3_600, kind: .processing) }
        try bench.turn()
        try bench.suspend(4_000)
        #expect(bench.launcher.started.count == 1)
        for count in 2...10 {
            try bench.pass(0.999)
            #expect(bench.launcher.started.count == count - 1)
            try bench.pass(0.001)
            #expect(bench.launcher.started.count == count)
        }
        #expect(try bench.live().map(\.identifier) == (0..<10).map { "r\($0)" })
    }

    @Test func `an identifier has one launch at a time`() throws {
        try bench.submit("p", kind: .processing)
        try bench.turn()
        let first = try bench.onlyLive()
        // If a request is submitted again during its launch, the request waits until the launch has ended.
        try bench.submit("p", kind: .processing)
        try bench.pass(60)
        #expect(bench.launcher.started == [first])
        try bench.end(first, .completed)
        #expect(bench.launcher.started.count == 2)
    }

    @Test func `a launch records its requested time and the cause of its start`() throws {
        try change { $0.isNetworkAvailable = false }
        let asked = bench.now + 60
        try bench.submit("p", after: 60, kind: .processing, network: true)
        try bench.pass(600)
        try change { $0.isNetworkAvailable = true }
        let launch = try bench.launch(bench.onlyLive())
        #expect(launch.askedBegin == asked)
        #expect(launch.askedAt == Bench.start)
        #expect(launch.woke == WakeCause.network.rawValue)
        #expect(launch.requiresNetwork)
    }

    // MARK: A newer version

    @Test func `the agent finishes its launches and exits when the ledger has a newer version`() throws {
        try bench.submit("running")
        try bench.turn()
        let id = try bench.onlyLive()
        try bench.submit("waiting", after: 5)
        let newer = try DatabaseQueue(path: bench.ledger.directories.ledger.path)
        try newer.write { try $0.execute(sql: "INSERT INTO grdb_migrations VALUES ('9999: from the future')") }
        try bench.pass(10)
        #expect(bench.launcher.started == [id], "the agent starts no new launch")
        #expect(!bench.host.hasFinished, "the agent waits for the running launch")
        try bench.end(id, .completed)
        #expect(bench.host.hasFinished)
        #expect(bench.launcher.warned.isEmpty)
        #expect(try bench.request("waiting") != nil)
    }

    /// The agent is stopped before or after the newer version upgraded the ledger. The agent must keep files that the newer
    /// version put into the spool.
    @Test(arguments: [true, false])
    func `a stop during an upgrade does not remove spool files of the newer version`(_ isStoppedFirst: Bool) throws {
        try bench.submit("running")
        try bench.turn()
        let id = try bench.onlyLive()
        let file = bench.ledger.directories.spool.appendingPathComponent("of-a-newer-version")
        try Data("new".utf8).write(to: file)
        func upgrade() throws {
            let newer = try DatabaseQueue(path: bench.ledger.directories.ledger.path)
            try newer.write { try $0.execute(sql: "INSERT INTO grdb_migrations VALUES ('9999: from the future')") }
            try bench.turn()
        }
        if !isStoppedFirst { try upgrade() }
        try bench.hear(.stopRequested)
        if isStoppedFirst { try upgrade() }
        try bench.end(id, .expired)
        #expect(bench.host.hasFinished)
        #expect(FileManager.default.fileExists(atPath: file.path))
    }
}
