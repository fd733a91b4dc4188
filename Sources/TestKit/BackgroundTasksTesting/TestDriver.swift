import BackgroundAgent
import BackgroundLedger
import BackgroundRuntime
import BackgroundScenes
import BackgroundScheduling
import BackgroundTasks
import BackgroundTransfer
import Foundation
import Synchronization

/// Drives an app's background work through virtual time. The planner, the agent and the transfer machines are real and use a
/// ledger in memory. Clocks, network, desktop and processes are test doubles that the test controls.
///
/// Handlers registered with `BGTaskScheduler`, scenes of an `App` (``adopt(_:)``), background `URLSession`s and
/// `UNUserNotificationCenter` work as in a launched process. Before virtual time passes, each handler either ends, or waits for
/// an event that requires virtual time (an awaited transfer, or a sleep on ``clock``). For handlers that wait for anything else,
/// the driver waits at most ``patience`` of real time.
///
/// Requests of ordinary `URLSession`s also receive responses from ``network``. If a test awaits a request outside a launch, the
/// response arrives while the test lets virtual time pass. Start the request with `async let`, and then call ``advance(by:)``.
///
/// Virtual time does not pass before a registered handler has returned. A handler that blocks its queue until a transfer has
/// ended delays the test by ``patience``.
///
/// Virtual time does not pass while an action of a scene runs code. An action whose session delegate awaits transfers lets time
/// pass. In unstructured tasks, on the main actor and on queues, the driver detects only awaited transfers and sleeps.
///
/// In contrast to real launches, all launches share this process. The app's variables therefore keep their values after a launch.
/// If a handler is killed, its task is cancelled, and its code continues until it returns. The code of a killed handler has no
/// effect on the ledger.
public actor TestDriver {
    /// The wall clock and the waking seconds of the simulated host. A sleep on this clock ends when virtual time reaches the
    /// deadline.
    public nonisolated let clock: VirtualClock
    /// The servers and their faults. Each server has one origin.
    public nonisolated let network: VirtualNetwork
    /// The notification server of the virtual desktop, with the shown notifications and their buttons.
    public nonisolated let notifications: VirtualNotificationServer
    /// The contents of the ledger.
    public nonisolated let ledger: LedgerInspector
    /// A stream of launches. Each launch appears when it begins, and again when it ends.
    public nonisolated let launches: AsyncStream<LaunchReport>

    /// The maximum real time that the driver waits for a handler that does not end and does not wait for virtual time. After this
    /// time, virtual time passes. Time in which other tests use all threads does not count.
    public var patience: Duration = .seconds(20)

    /// The home of the simulated user.
    package nonisolated let home: URL
    let machine: SimulatedHost
    let app = HostedApp()
    let changes = ChangeCounter()
    private let runtime: AppRuntime
    let executor: HostedExecutor
    private let launchEvents: AsyncStream<LaunchReport>.Continuation
    private var reportedOpen: [Int64] = []
    private var latestReported: Int64 = 0
    private var reportedCommits = -1
    /// The number of the latest launch that the test has received. A launch that began while the test was not waiting for a
    /// launch is included.
    private var seenLaunch: Int64 = 0
    /// Work that did not end within ``patience``, with the value of the change counter at that time. The driver waits for such
    /// work again only after another change.
    private var slow: [Work: Int] = [:]

    // MARK: Beginning and end

    /// Runs a test with a new driver. A process runs one driver at a time. Other runs wait for their turn, so tests may run in
    /// parallel.
    ///
    /// - Parameters:
    ///   - identifiers: The identifiers that `BGTaskSchedulerPermittedIdentifiers` would contain.
    ///   - start: The first time of the wall clock.
    ///   - zone: The time zone of the user.
    ///   - dates: The clock to which the app's dates belong; ``AppDates/realClock`` for code under test that calls `Date()`.
    ///   - body: The test. Register the handlers in this closure.
    /// - Throws: The error of `body`; ``NestedRun`` inside another run; ``UnimplementedEffects`` if the app used a server or
    ///   route that the test had not set up. ``UnimplementedEffects`` replaces an error of `body`.
    public static func run<Value: Sendable>(
        permitting identifiers: [String], start: Date = Date(timeIntervalSince1970: 1_749_542_400),
        zone: TimeZone = TimeZone(identifier: "Europe/Berlin") ?? .gmt, dates: AppDates = .virtualClock,
        _ body: @Sendable (TestDriver) async throws -> Value
    ) async throws -> Value {
        let manifest = AppManifest(appIdentifier: "app", displayName: "App", version: "1", permittedIdentifiers: identifiers)
        return try await run(manifest, start: start, zone: zone, dates: dates, body)
    }

    /// Runs a test of an app that has the given manifest.
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
                alarm: { seconds, isIdle, action in
                    let number = clock.schedule(after: seconds, isIdle: isIdle) {
                        action()
                        // Virtual time must not pass before the tasks that the alarm resumes have run.
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

    /// Registers the scenes of an app before any launch, like the app's own main function. The app object lives as long as the
    /// driver.
    @MainActor
    public func adopt<A: App>(_ app: A.Type) async { app.prepareForTestHost() }

    /// Completes the start-up of an app whose application delegate is the app object.
    @MainActor
    public func adopt<Delegate: ApplicationDelegate>(delegate: Delegate.Type) async { delegate.prepareForTestHost() }

    // MARK: Time

    /// Handles all events of the current virtual time. Submitted requests are planned and due requests are launched. Handlers
    /// end, or begin to wait for an event that requires virtual time.
    ///
    /// - Throws: an error if events cause each other without end, so that virtual time cannot pass.
    public func settle() async throws {
        while true {
            // Handlers run first, so that the agent handles all their requests of the current virtual time in one pass.
            let known = changes.count
            let busy = busy().filter { slow[$0] != known }
            if !busy.isEmpty {
                if await !changes.wait(after: known, atMost: patience) { for work in busy { slow[work] = known } }
                continue
            }
            try machine.run()
            if changes.count == known, await !waitForDelegates(known) { return reportLaunches() }
        }
    }

    /// Work in progress that does not depend on virtual time.
    private enum Work: Hashable {
        /// A launch or a command that does not wait for virtual time.
        case process(Int64)
        /// Swift tasks of the app that are running or queued.
        case tasks
    }

    private func busy() -> [Work] {
        // Virtual time must not pass before a handler has returned, because until then the handler can set its expiration handler
        // and complete its task.
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
            // The delegate of the launch awaits a transfer, which needs virtual time.
            return app.awaitedSessions(of: launch).isDisjoint(with: moving)
        }
    }

    /// Waits until session delegates have received all events of the current virtual time. Returns `false` if no event is being
    /// delivered.
    private func waitForDelegates(_ known: Int) async -> Bool {
        let calls = runtime.part { OutstandingCalls() }
        guard !calls.isEmpty else { return false }
        return await changes.wait(after: known, atMost: patience)
    }

    /// Lets virtual time pass.
    ///
    /// - Throws: an error if events cause each other without end, so that virtual time cannot pass.
    public func advance(by duration: Duration) async throws {
        // A test may call this method in a loop to wait for another task. On a single thread, the other task runs only if this
        // method yields.
        await Task.yield()
        try await settle()
        let end = clock.awake + duration / .seconds(1)
        while end - clock.awake > 1e-9 {
            try machine.step(atMost: end - clock.awake)
            try await settle()
        }
        saw(latestLaunch)
    }

    /// Lets virtual time pass until the next launch has begun, and its handler has ended or waits for virtual time. A launch that
    /// began during ``finish(_:within:)`` or during a change of conditions is the next launch. A launch that began during
    /// ``advance(by:)`` is not the next launch.
    ///
    /// - Parameter limit: the maximum virtual time.
    /// - Throws: ``NothingIsLaunched`` with the waiting requests and the reasons.
    @discardableResult
    public func advanceToNextLaunch(within limit: Duration = .seconds(400 * 86_400)) async throws -> LaunchReport {
        try await settle()
        let end = clock.awake + limit / .seconds(1)
        let next = seenLaunch + 1
        while latestLaunch < next {
            guard clock.awake < end, machine.untilNextEvent != nil else {
                throw NothingIsLaunched(
                    waiting: ledger.requests, now: clock.date, conditions: machine.conditions.current)
            }
            try machine.step(atMost: end - clock.awake)
            try await settle()
        }
        saw(next)
        return try report(of: next)
    }

    /// Records that the test has received this launch and all earlier launches.
    func saw(_ launch: Int64) { seenLaunch = max(seenLaunch, launch) }

    /// Lets virtual time pass until a launch has ended.
    ///
    /// - Parameters:
    ///   - launch: The launch, identified by ``LaunchReport/id``.
    ///   - limit: The maximum virtual time.
    /// - Throws: ``StillRunning`` after `limit`.
    @discardableResult
    public func finish(_ launch: LaunchReport, within limit: Duration = .seconds(1_000)) async throws -> LaunchReport {
        saw(launch.id)
        try await settle()
        let end = clock.awake + limit / .seconds(1)
        while true {
            let report = try report(of: launch.id)
            if report.outcome != nil { return report }
            guard clock.awake < end else { throw StillRunning(launch: report, limit: limit) }
            // Continued processing runs in the test's process. The handler is notified of ledger changes on other threads, and
            // has to finish before the time limit.
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

    private func reportLaunches() {
        let commits = machine.ledger.commitCount
        guard commits != reportedCommits else { return }
        reportedCommits = commits
        let known = Set(reportedOpen)
        let reports = ledger.read { transaction in
            let latest = try transaction.latestLaunch() ?? 0
            let new = latest > latestReported ? Array(latestReported + 1...latest) : []
            latestReported = max(latestReported, latest)
            return try (reportedOpen + new).compactMap { try transaction.launch($0).map(LaunchReport.init) }
        }
        for report in reports where !known.contains(report.id) || report.outcome != nil { launchEvents.yield(report) }
        reportedOpen = reports.filter { $0.outcome == nil }.map(\.id)
    }
}

/// The error for waiting requests that the passing of time alone does not launch.
public struct NothingIsLaunched: Error, CustomStringConvertible {
    /// The waiting requests.
    public let waiting: [PendingRequestReport]
    /// The virtual time at which the driver gave up.
    public let now: Date
    let conditions: DesktopConditions

    /// A description of the waiting requests and their conditions.
    public var description: String {
        let names = waiting.map { request in
            let date = request.earliestBegin.map { ", not before \($0.formatted(.iso8601))" } ?? ""
            return "\(request.id) (\(request.kind.rawValue), \(request.failures) failures\(date))"
        }
        let state =
            (conditions.isNetworkAvailable ? "network available, " : "network not available, ")
            + (conditions.isOnExternalPower ? "external power connected" : "external power not connected")
        let isFar = waiting.contains { $0.earliestBegin.map { $0 > now } ?? false }
        let hint = isFar ? " (if the app reads the time with Date(), call TestDriver.run with `dates: .realClock`)" : ""
        return "no launch begins: " + (names.isEmpty ? "no request waits" : names.joined(separator: ", ")) + "; " + state
            + "; the clock shows \(now.formatted(.iso8601))" + hint
    }
}

/// The error for a launch that did not end within the limit of virtual time.
public struct StillRunning: Error, CustomStringConvertible {
    /// The running launch.
    public let launch: LaunchReport
    /// The maximum virtual time for which the call waited.
    public let limit: Duration

    /// A description of the launch and the limit.
    public var description: String { "launch \(launch.id) of \(launch.identifier) still runs after \(limit)" }
}

/// The error for a run inside another run. The inner run would wait forever for the end of the outer run.
public struct NestedRun: Error, CustomStringConvertible {
    /// A description of the error.
    public var description: String { "TestDriver.run was called within TestDriver.run, but only one driver can run at a time" }
}

/// The error for a launch that is not in the ledger.
public struct UnknownLaunch: Error {
    let id: Int64
}

/// The error for requests to servers or routes that the test had not set up.
public struct UnimplementedEffects: Error, CustomStringConvertible {
    /// The requests, in order.
    public let effects: [String]
    /// The error of the test, which these requests may have caused.
    public let underlying: (any Error)?

    /// A list of the requests.
    public var description: String {
        "requests were sent to servers or routes that the test did not set up: " + effects.joined(separator: "; ")
            + (underlying.map { "; also: \($0)" } ?? "")
    }
}

/// Admits one caller at a time, in order.
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
