@testable import BackgroundLedger
import BackgroundScheduling
import Foundation
import GRDB
import Testing

@testable import BackgroundAgent

/// Conditions that come, go, and are not yet back; and turns.
@Suite struct ConditionTests {
    private let bench: Bench

    init() throws { bench = try Bench() }

    private func change(_ change: (inout DesktopConditions) -> Void) throws {
        bench.conditions.set(change)
        try bench.hear(.conditions(bench.conditions.current))
    }

    @Test func aLostNetworkExpiresWhatNeedsIt() throws {
        try change { _ in }
        try bench.submit("p", kind: .processing, network: true)
        try bench.turn()
        let id = try bench.onlyLive()
        try change { $0.isNetworkAvailable = false }
        #expect(bench.launcher.warned == [id])
        #expect(try bench.launch(id).stopReason == .conditionLost)
        try bench.end(id, .expired)
        #expect(try bench.launch(id).outcome == .expired)
        // It is not done: it waits for the network, and has nothing to be forgiven.
        let waiting = try #require(try bench.request("p"))
        #expect(waiting.failures == 0 && waiting.backoffUntil == nil)
        try bench.pass(3600)
        #expect(try bench.live().isEmpty)
        try change { $0.isNetworkAvailable = true }
        let again = try bench.onlyLive()
        #expect(try bench.launch(again).generation == 1)
        try bench.end(again, .completed)
        #expect(try bench.request("p") == nil, "it had its say")
    }

    /// It asked for the next time itself, or for none: that is how it is then.
    @Test(arguments: [true, false]) func whatTheHandlerAsksForStands(_ submits: Bool) throws {
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

    @Test func lostPowerExpiresWhatNeedsIt() throws {
        try bench.submit("p", kind: .processing, power: true)
        try bench.turn()
        let id = try bench.onlyLive()
        try change { $0.isNetworkAvailable = false }
        #expect(bench.launcher.warned.isEmpty, "it did not ask for a network")
        try change { $0.isOnExternalPower = false }
        #expect(bench.launcher.warned == [id])
        try bench.pass(5)
        #expect(bench.launcher.killed == [id], "and after the grace time it is killed")
    }

    @Test func savingPowerEndsNothing() throws {
        try bench.submit("p", kind: .processing)
        try bench.turn()
        try change {
            $0.isOnExternalPower = false
            $0.isLowPowerMode = true
        }
        #expect(bench.launcher.warned.isEmpty)
    }

    @Test func savingPowerHoldsBack() throws {
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

    @Test func nothingBeginsOnAGuess() throws {
        try bench.submit("p", kind: .processing, power: true)
        try bench.startAgent(knowing: false)
        #expect(bench.launcher.started.isEmpty)
        try change { $0.isOnExternalPower = false }
        #expect(bench.launcher.started.isEmpty)
        // A desktop that never says a word is taken at its first look.
        bench.conditions.set { $0.isOnExternalPower = true }
        try bench.startAgent(knowing: false)
        try bench.pass(9.9)
        #expect(bench.launcher.started.isEmpty)
        try bench.pass(0.1)
        #expect(bench.launcher.started.count == 1)
    }

    // MARK: Sleep

    @Test func afterASleepItWaitsUntilTheNetworkIsBack() throws {
        try change { _ in }
        try bench.submit(daily: true)
        try bench.turn()
        // Two hours of sleep over noon; NetworkManager says "asleep" until it is connected again.
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

    @Test func butNotForEver() throws {
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

    // MARK: Turns

    @Test func severalDueAtOnceBeginOneAfterTheOther() throws {
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

    @Test func oneCopyPerIdentifier() throws {
        try bench.submit("p", kind: .processing)
        try bench.turn()
        let first = try bench.onlyLive()
        // Submitted again while it runs: waits for its end.
        try bench.submit("p", kind: .processing)
        try bench.pass(60)
        #expect(bench.launcher.started == [first])
        try bench.end(first, .completed)
        #expect(bench.launcher.started.count == 2)
    }

    @Test func whatWasAskedAndWhatWokeAreTold() throws {
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

    @Test func aNewerVersionIsMadeWayFor() throws {
        try bench.submit("running")
        try bench.turn()
        let id = try bench.onlyLive()
        try bench.submit("waiting", after: 5)
        let newer = try DatabaseQueue(path: bench.ledger.directories.ledger.path)
        try newer.write { try $0.execute(sql: "INSERT INTO grdb_migrations VALUES ('9999: from the future')") }
        try bench.pass(10)
        #expect(bench.launcher.started == [id], "nothing new begins")
        #expect(!bench.host.hasFinished, "what runs is let finish")
        try bench.end(id, .completed)
        #expect(bench.host.hasFinished)
        #expect(bench.launcher.warned.isEmpty)
        #expect(try bench.request("waiting") != nil)
    }

    /// A stop beside an upgrade, in either order: what the newer version put into the spool is not this one's to remove.
    @Test(arguments: [true, false]) func aStopWhileANewerVersionIsMadeWayForTouchesNothingOfIts(_ isStoppedFirst: Bool) throws {
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
