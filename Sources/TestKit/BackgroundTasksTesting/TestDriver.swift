import BackgroundAgent
import BackgroundLedger
import BackgroundRuntime
import BackgroundScenes
import BackgroundScheduling
import BackgroundTasks
import BackgroundTransfer
import Foundation
import Synchronization

/// Drives an app's background work through virtual time: the real planner, the real agent and the real transfer machines on a
/// ledger in memory; clocks, network, desktop and processes are doubles that do what the test says.
///
/// Handlers registered with `BGTaskScheduler`, scenes of an `App` (``adopt(_:)``), background `URLSession`s and
/// `UNUserNotificationCenter` work as in a launched process. Before virtual time moves, every handler gets to its end or to
/// something that only time can bring (an awaited transfer, a sleep on ``clock``); of handlers that wait for anything else only
/// ``patience`` of real time is waited for. Requests of ordinary `URLSession`s are answered by ``network`` too; one that the test
/// itself awaits, outside a launch, is answered while the test lets time pass (`async let` it, then ``advance(by:)``).
///
/// Virtual time does not pass before a registered handler has returned. A handler that blocks its queue until a transfer has ended
/// delays the test by ``patience``.
///
/// Virtual time does not pass while an action of a scene computes. An action whose session delegate awaits transfers lets time pass. In
/// unstructured tasks, on the main actor and on queues the driver sees awaited transfers and sleeps only.
///
/// Differs from a real launch: all launches share this process, so what the app holds in memory outlives a launch, and a killed
/// handler's code goes on (cancelled, and without effect on the ledger) until it returns.
public actor TestDriver {
    /// Both clocks of the simulated host. Sleeps on it wake when the driver's time comes there.
    public nonisolated let clock: VirtualClock
    /// Servers by origin, and their faults.
    public nonisolated let network: VirtualNetwork
    /// The virtual desktop's notification server: what is shown, buttons to press.
    public nonisolated let notifications: VirtualNotificationServer
    /// What lies in the ledger.
    public nonisolated let ledger: LedgerInspector
    /// Launches as they begin, and again as they end; for tests that follow along.
    public nonisolated let launches: AsyncStream<LaunchReport>

    /// Real time that a handler is waited for which neither ends nor awaits anything virtual, before virtual time moves on. Time in
    /// which other tests hold all threads does not count.
    public var patience: Duration = .seconds(20)

    /// The home of the simulated user.
    package nonisolated let home: URL
    let machine: SimulatedHost
    let app = HostedApp()
    let changes = ChangeCounter()
    private let runtime: AppRuntime
    let executor: HostedExecutor
    private let launchEvents: AsyncStream<LaunchReport>.Continuation
    private var toldOpen: [Int64] = []
    private var toldLatest: Int64 = 0
    private var toldCommits = -1
    /// The latest launch that the test was told of, or let go by.
    private var seenLaunch: Int64 = 0
    /// Work that was waited for without a result, and the changes by then: not waited for again before something changes.
    private var slow: [Work: Int] = [:]

    // MARK: Beginning and end

    /// Runs a test with a driver of its own. One at a time in a process: others wait for their turn, so tests may run in parallel.
    ///
    /// - Parameters:
    ///   - identifiers: what `BGTaskSchedulerPermittedIdentifiers` would list.
    ///   - start: what the wall clock shows first.
    ///   - zone: where the person is.
    ///   - dates: the clock that the app's dates belong to; ``AppDates/realClock`` for code under test that calls `Date()`.
    ///   - body: the test. Register handlers in it.
    /// - Throws: what `body` throws; ``UnimplementedEffects`` if something was asked of a double that the test had not set up, also
    ///   where `body` throws because of it; ``NestedRun`` within another run.
    public static func run<Value: Sendable>(
        permitting identifiers: [String], start: Date = Date(timeIntervalSince1970: 1_749_542_400),
        zone: TimeZone = TimeZone(identifier: "Europe/Berlin") ?? .gmt, dates: AppDates = .virtualClock,
        _ body: @Sendable (TestDriver) async throws -> Value
    ) async throws -> Value {
        let manifest = AppManifest(appIdentifier: "app", displayName: "App", version: "1", permittedIdentifiers: identifiers)
        return try await run(manifest, start: start, zone: zone, dates: dates, body)
    }

    /// Runs a test of an app with the given manifest.
    package static func run<Value: Sendable>(
        _ manifest: AppManifest, start: Date, zone: TimeZone, dates: AppDates = .virtualClock,
        _ body: @Sendable (TestDriver) async throws -> Value
    ) async throws -> Value {
        guard !AppRuntime.isTestHosted else { throw NestedRun() }
        await turnstile.enter()
        let driver: TestDriver
        do { driver = try TestDriver(manifest, start: start, zone: zone, dates: dates) } catch {
            await turnstile.leave()
            throw error
        }
        let result: Result<Value, any Error>
        do { result = .success(try await AppRuntime.$isTestHosted.withValue(true) { try await body(driver) }) } catch {
            result = .failure(error)
        }
        let missing = await driver.close()
        await turnstile.leave()
        guard missing.isEmpty else {
            var underlying: (any Error)?
            if case .failure(let error) = result { underlying = error }
            throw UnimplementedEffects(effects: missing, underlying: underlying)
        }
        return try result.get()
    }

    private static let turnstile = Turnstile()

    private init(_ manifest: AppManifest, start: Date, zone: TimeZone, dates: AppDates) throws {
        let (app, changes) = (app, changes)
        let machine = try SimulatedHost(
            start: start, zone: zone, appIdentifier: manifest.appIdentifier, program: app, random: { 0.5 })
        (self.machine, home) = (machine, machine.folder)
        let clock = machine.clock
        (self.clock, network, notifications) = (clock, machine.network, machine.desktop)
        ledger = LedgerInspector(ledger: machine.ledger)
        (launches, launchEvents) = AsyncStream.makeStream(of: LaunchReport.self)
        let living = machine.presence
        executor = HostedExecutor { changes.add() }
        let appNow: (@Sendable () -> Date)? = if dates == .realClock { { Date() } } else { nil }
        runtime = AppRuntime.enter(
            TestHost(
                manifest: manifest, ledger: machine.ledger, now: { clock.date },
                elapsed: { clock.awake }, appNow: appNow, zone: { clock.timeZone },
                agentIsNeeded: { changes.add() }, hasAgent: { living.hasAgent }, isAlive: { living.isAlive($0) },
                waitsChanged: { changes.add() },
                alarm: { seconds, action in
                    let number = clock.schedule(after: seconds) {
                        action()
                        // The tasks that the alarm resumed run before time moves on.
                        changes.add()
                    }
                    return { clock.cancel(number) }
                }, executor: executor))
        let network = machine.network
        _ = runtime.part { InProcessTransport(onTestHost: VirtualNetwork.AppWire(network: network)) }
        network.onOrdinaryRequests { changes.add() }
        app.join(runtime) { launch in
            network.processEnded(launch: launch)
            changes.add()
        }
        runtime.part { OutstandingCalls() }.onIdle { changes.add() }
        runtime.part { HostedActivity() }.whenNone { changes.add() }
        clock.onSleepersChange { changes.add() }
        machine.onWake { changes.add() }
        _ = machine.ledger.onCommit { changes.add() }
    }

    private func close() -> [String] {
        app.end()
        network.close()
        runtime.close()
        launchEvents.finish()
        machine.killAgent()
        return network.unimplemented
    }

    /// Takes an app's scenes as its own main function does, before any launch. The app object lives as long as the driver.
    @MainActor
    public func adopt<A: App>(_ app: A.Type) async { app.enterStage() }

    /// The same for an app that is its delegate: it finishes launching.
    @MainActor
    public func adopt<Delegate: ApplicationDelegate>(delegate: Delegate.Type) async { delegate.enterStage() }

    // MARK: Time

    /// Everything at this moment happens: what was submitted is planned, what is due is launched, handlers get to their end or to
    /// something that only time can bring.
    /// - Throws: when one moment leads to the next without end, so that virtual time stands still.
    public func settle() async throws {
        while true {
            // Handlers first: what they all ask for at this moment is one look of the agent's.
            let known = changes.count
            let busy = busy().filter { slow[$0] != known }
            if !busy.isEmpty {
                if await !changes.wait(after: known, atMost: patience) { for work in busy { slow[work] = known } }
                continue
            }
            try machine.run()
            if changes.count == known, await !waitForDelegates(known) { return tellLaunches() }
        }
    }

    /// Work in progress that the passing of virtual time does not bring forward.
    private enum Work: Hashable {
        /// A launch or a command that awaits nothing.
        case process(Int64)
        /// Tasks that run or are about to.
        case tasks
    }

    private func busy() -> [Work] {
        // Before a handler returns it can set its expiration handler and complete its task, whatever it has begun.
        let haveReturned = runtime.part { HostedActivity() }.isEmpty
        var work = app.busy().filter { launch in
            !haveReturned || !clock.hasSleeper(launch: launch) && !network.isAsking(launch: launch)
        }.map(Work.process)
        if !executor.isIdle { work.append(.tasks) }
        let isQuiet =
            !work.contains(.tasks) && runtime.part { HostedActivity() }.isEmpty && runtime.part { OutstandingCalls() }.isEmpty
        guard isQuiet, !work.isEmpty else { return work }
        let moving = Set(
            ledger.read { try $0.unfinishedTransfers() }.filter { $0.state != .paused && !$0.isSuspended }.map(\.session))
        return work.filter { work in
            guard case .process(let launch) = work else { return true }
            // The delegate of the launch awaits a transfer that only virtual time moves.
            return app.awaitedSessions(of: launch).isDisjoint(with: moving)
        }
    }

    /// What happened so far is told to the delegates of sessions before time moves on. `false`: nothing is on its way to them.
    private func waitForDelegates(_ known: Int) async -> Bool {
        let calls = runtime.part { OutstandingCalls() }
        guard !calls.isEmpty else { return false }
        return await changes.wait(after: known, atMost: patience)
    }

    /// Lets virtual time pass.
    /// - Throws: when one moment leads to the next without end, so that virtual time stands still.
    public func advance(by duration: Duration) async throws {
        // A test that calls this in a loop waits for what other tasks do: on one thread they would have no turn.
        await Task.yield()
        try await settle()
        let end = clock.awake + duration / .seconds(1)
        while end - clock.awake > 1e-9 {
            try machine.step(atMost: end - clock.awake)
            try await settle()
        }
        saw(latestLaunch)
    }

    /// Lets virtual time pass until the next launch has begun, and its handler has come to its end or to something that only
    /// time can bring. One that began since, within ``finish(_:within:)`` or a change of conditions, is that next launch; those that
    /// began while ``advance(by:)`` let time pass are over.
    ///
    /// - Parameter limit: virtual time after which it is given up.
    /// - Throws: ``NothingIsLaunched``, with what waits and why.
    @discardableResult
    public func advanceToNextLaunch(within limit: Duration = .seconds(400 * 86_400)) async throws -> LaunchReport {
        try await settle()
        let end = clock.awake + limit / .seconds(1)
        let next = seenLaunch + 1
        while latestLaunch < next {
            guard clock.awake < end, machine.untilNextMoment != nil else {
                throw NothingIsLaunched(
                    waiting: ledger.requests, now: clock.date, conditions: machine.conditions.current)
            }
            try machine.step(atMost: end - clock.awake)
            try await settle()
        }
        saw(next)
        return try report(of: next)
    }

    /// The test knows of this launch, and of those before it.
    func saw(_ launch: Int64) { seenLaunch = max(seenLaunch, launch) }

    /// Lets virtual time pass until a launch has ended.
    ///
    /// - Parameters:
    ///   - launch: its number, as ``LaunchReport/id`` tells it.
    ///   - limit: virtual time after which it is given up.
    /// - Throws: ``StillRunning`` then.
    @discardableResult
    public func finish(_ launch: LaunchReport, within limit: Duration = .seconds(1_000)) async throws -> LaunchReport {
        saw(launch.id)
        try await settle()
        let end = clock.awake + limit / .seconds(1)
        while true {
            let report = try report(of: launch.id)
            if report.outcome != nil { return report }
            guard clock.awake < end else { throw StillRunning(launch: report, limit: limit) }
            // Continued processing is no process of the host's: its handler hears the ledger's word on threads of its own, and has
            // its last words before their time is over.
            if report.kind == .continuedProcessing, report.stopReason != nil,
                await changes.wait(after: changes.count, atMost: patience)
            {
                try await settle()
                continue
            }
            try machine.step(atMost: end - clock.awake)
            try await settle()
        }
    }

    private var latestLaunch: Int64 { ledger.read { try $0.latestLaunch() ?? 0 } }

    func report(of id: Int64) throws -> LaunchReport {
        guard let record = ledger.read({ try $0.launch(id) }) else { throw UnknownLaunch(id: id) }
        return LaunchReport(record)
    }

    private func tellLaunches() {
        let commits = machine.ledger.commitCount
        guard commits != toldCommits else { return }
        toldCommits = commits
        let known = Set(toldOpen)
        let reports = ledger.read { transaction in
            let latest = try transaction.latestLaunch() ?? 0
            let new = latest > toldLatest ? Array(toldLatest + 1...latest) : []
            toldLatest = max(toldLatest, latest)
            return try (toldOpen + new).compactMap { try transaction.launch($0).map(LaunchReport.init) }
        }
        for report in reports where !known.contains(report.id) || report.outcome != nil { launchEvents.yield(report) }
        toldOpen = reports.filter { $0.outcome == nil }.map(\.id)
    }
}

/// Nothing that waits will be launched by time alone.
public struct NothingIsLaunched: Error, CustomStringConvertible {
    /// What waits.
    public let waiting: [PendingRequestReport]
    /// What the virtual clock showed when it was given up.
    public let now: Date
    let conditions: DesktopConditions

    /// What waits, and for what.
    public var description: String {
        let names = waiting.map { request in
            let date = request.earliestBegin.map { ", not before \($0.formatted(.iso8601))" } ?? ""
            return "\(request.id) (\(request.kind.rawValue), \(request.failures) failures\(date))"
        }
        let state =
            "network \(conditions.isNetworkAvailable ? "there" : "gone"), "
            + "external power \(conditions.isOnExternalPower ? "there" : "gone")"
        let isFar = waiting.contains { $0.earliestBegin.map { $0 > now } ?? false }
        let hint = isFar ? " (code that calls Date() for it needs TestDriver.run with `dates: .realClock`)" : ""
        return "nothing is launched: " + (names.isEmpty ? "no request waits" : names.joined(separator: ", ")) + "; " + state
            + "; the clock shows \(now.formatted(.iso8601))" + hint
    }
}

/// A launch did not end in the virtual time that it was given.
public struct StillRunning: Error, CustomStringConvertible {
    /// As it is.
    public let launch: LaunchReport
    /// What it was given.
    public let limit: Duration

    /// Which, and how long.
    public var description: String { "launch \(launch.id) of \(launch.identifier) still runs after \(limit)" }
}

/// A driver was asked for within the test of another, which would wait for itself for ever.
public struct NestedRun: Error, CustomStringConvertible {
    /// In words.
    public var description: String { "TestDriver.run within TestDriver.run: one driver at a time" }
}

/// The ledger knows no such launch.
public struct UnknownLaunch: Error {
    let id: Int64
}

/// Something was asked of a double that the test had not set up.
public struct UnimplementedEffects: Error, CustomStringConvertible {
    /// What was asked, in order.
    public let effects: [String]
    /// What the test threw besides, perhaps because of it.
    public let underlying: (any Error)?

    /// The list.
    public var description: String {
        "the test did not set up what was asked for: " + effects.joined(separator: "; ")
            + (underlying.map { "; besides: \($0)" } ?? "")
    }
}

/// Lets one in at a time, in order.
private actor Turnstile {
    private var isTaken = false
    private var waiting: [CheckedContinuation<Void, Never>] = []

    func enter() async {
        guard isTaken else { return isTaken = true }
        await withCheckedContinuation { waiting.append($0) }
    }

    func leave() {
        guard !waiting.isEmpty else { return isTaken = false }
        waiting.removeFirst().resume()
    }
}
