import ProcessSupport
import BackgroundLedger
import BackgroundRuntime
import BackgroundScheduling
@_exported import Foundation
import Synchronization

/// Submits requests for background launches and registers the handlers of the launches.
///
/// A request that ``submit(_:)`` accepted is stored on the disk. The request is not lost if this process or the agent ends, at a
/// logout or at a reboot.
///
/// Differs from Apple: the scheduler does not learn when the user uses the app, and it has no energy budget. A request is launched
/// when its conditions hold. The command `why` shows the conditions that do not hold.
///
/// The class is open, like Apple's class, so that tests of an app can mock it. `BackgroundTasksTesting` runs the real scheduler in
/// virtual time.
open class BGTaskScheduler: NSObject, @unchecked Sendable {  // because this class has no mutable state, but a subclass may have
    /// The scheduler of this process.
    open class var shared: BGTaskScheduler { ofThisProcess }

    private static let ofThisProcess = {
        // Sets the app's identity in Foundation first, because identifiers are often made from the bundle identifier.
        _ = AppManifest.current
        return BGTaskScheduler()
    }()

    /// Creates an instance of a subclass. Differs from Apple: on iOS, an app cannot create a scheduler.
    public override init() { super.init() }

    // MARK: Handlers

    /// Registers the handler of a task. Call this method before ``run()`` or before the app's scenes are built.
    ///
    /// The handler of a wildcard (`app.export.*`) is used for identifiers that the wildcard covers and that have no handler. If
    /// several wildcards cover an identifier, the longest wildcard is used. ``BGTask/identifier`` is the identifier that was
    /// submitted.
    ///
    /// - Parameters:
    ///   - identifier: an identifier that the permitted list contains or a wildcard of the list covers. A wildcard is also
    ///     allowed, as in iOS 26.
    ///   - queue: the queue on which the handler runs, or `nil` for a background queue of the framework.
    ///   - launchHandler: does the work and ends with ``BGTask/setTaskCompleted(success:)``.
    /// - Returns: `false` if the permitted list does not cover the identifier.
    /// - Precondition: The identifier was not registered before, and ``run()`` was not called before. Handlers of continued
    ///   processing can be registered after ``run()``: the second condition does not apply to a wildcard, or to an identifier that
    ///   only a wildcard permits.
    @discardableResult
    open func register(
        forTaskWithIdentifier identifier: String, using queue: DispatchQueue?, launchHandler: @escaping (BGTask) -> Void
    ) -> Bool {
        let manifest = AppRuntime.shared.manifest
        guard manifest.permitsHandler(of: identifier) else { return false }
        TaskHandlers.shared.register(
            identifier, queue: queue, isLateAllowed: AppManifest.isWildcard(identifier) || !manifest.names(identifier),
            handler: launchHandler)
        return true
    }

    /// Runs the handler of the launch for which the agent started this process, and ends the process when the launch has ended.
    /// Beyond Apple.
    ///
    /// In a plain `main.swift`, register the handlers, then call this method. If the agent did not launch the process, the method
    /// returns when the continued processing of this process has ended, usually at once. A handler that is registered later stops
    /// the program with an error.
    public func run() {
        if TaskHandlers.shared.hasActions { BackgroundLaunch.recordTimeChangeInterest() }
        BackgroundLaunch.serveLaunch()
        ContinuedTasks.shared.runUntilIdle()
    }

    // MARK: Requests

    /// Stores a request in the agent's database (ledger). A pending request with the same identifier is replaced.
    ///
    /// Without `earliestBeginDate`, the request begins as soon as its conditions hold. If a launch submits such a request, and the
    /// identifier was launched without a date before, the request waits for five minutes. The pause doubles with each such launch
    /// of the last day, up to an hour. On iOS, the system decides the pause. Without this pause, an app that submits its next
    /// refresh in each handler would be launched again and again.
    ///
    /// Cost: one transaction, synced to the disk. If no agent is running, an agent is started.
    /// - Throws: ``BGTaskScheduler/Error``.
    open func submit(_ taskRequest: BGTaskRequest) throws {
        let manifest = AppRuntime.shared.manifest
        guard manifest.permits(taskRequest.identifier) else {
            throw Error(
                .notPermitted,
                "\"\(taskRequest.identifier.prefix(80))\" is not among the permitted identifiers of \(manifest.appIdentifier)")
        }
        if let continued = taskRequest as? BGContinuedProcessingTaskRequest { return try submitContinued(continued) }
        if taskRequest is BGHealthResearchTaskRequest {
            throw Error(.notPermitted, "\(taskRequest.identifier): health research does not exist on Linux")
        }
        if let missing = AppRuntime.shared.missingAgent { throw Error(.unavailable, "no agent can launch this app: \(missing)") }
        let now = AppRuntime.shared.now
        let record = taskRequest.record(now: now, AppRuntime.shared.date(fromApp:))
        try check(record)
        let launch = LaunchContext.current?.id
        let outcome = try storing(beforeStart: { if $0 == nil { AppRuntime.shared.installLoginEntry() } }) {
            transaction -> Error? in
            if let limit = PendingLimit.of(record.kind) {
                let others = try transaction.pendingCount(of: record.kind, besides: record.identifier, upTo: limit)
                guard others < limit else {
                    return Error(
                        .tooManyPendingTaskRequests,
                        "\(others) \(record.kind.rawValue) requests are pending; the limit is \(limit)")
                }
            }
            try transaction.submit(record, in: launch, now: now, zone: AppRuntime.shared.zone)
            return nil
        }
        if let outcome { throw outcome }
    }

    /// Makes a request durable, on the thread or actor of the caller. This is the async method of Apple's SDK 27. The request is
    /// durable when the method returns.
    /// - Throws: ``BGTaskScheduler/Error``.
    nonisolated(nonsending)
        open func submitTaskRequest(_ taskRequest: BGTaskRequest) async throws
    { try submit(taskRequest) }

    /// Stores a request, and then calls a handler on a background queue. This is the method with a completion handler of Apple's
    /// SDK 27.
    ///
    /// Differs from Apple: the request is stored when this method returns, even if the process ends before the handler is called.
    @preconcurrency open func submitTaskRequest(
        _ taskRequest: BGTaskRequest, completionHandler: @escaping @Sendable ((any Swift.Error)?) -> Void
    ) {
        let outcome = Result { try submit(taskRequest) }
        OutstandingCalls.shared.run {
            switch outcome {
            case .success: completionHandler(nil)
            case .failure(let error): completionHandler(error)
            }
        }
    }

    /// Removes a pending request. A running launch is not stopped.
    open func cancel(taskRequestWithIdentifier identifier: String) {
        DurableWrites.shared.commit("the cancellation of \(identifier)") { _ = try $0.deleteRequest(identifier) }
    }

    /// Removes a pending request, and throws if that fails. Beyond Apple.
    /// - Throws: ``BGTaskScheduler/Error/unavailable``.
    public func removeTaskRequest(withIdentifier identifier: String) throws {
        _ = try storing { try $0.deleteRequest(identifier) }
    }

    /// Removes every pending request. Running launches continue.
    open func cancelAllTaskRequests() {
        DurableWrites.shared.commit("the cancellation of all requests") { _ = try $0.deleteAllRequests() }
    }

    /// Returns copies of the pending requests. A change to a copy has an effect only when the copy is submitted.
    open func pendingTaskRequests() async -> [BGTaskRequest] { pendingNow() }

    /// Returns a copy of the pending request with this identifier, or `nil` if no request with this identifier is pending. Beyond
    /// Apple.
    ///
    /// Cost: one read of the ledger, a fraction of a millisecond.
    /// - Throws: ``BGTaskScheduler/Error/unavailable``.
    public func pendingTaskRequest(withIdentifier identifier: String) throws -> BGTaskRequest? {
        do {
            return try AppRuntime.shared.ledger().read { ledger in
                try Self.pending(ledger).first { $0.identifier == identifier }
            }.flatMap(Self.request(of:))
        } catch {
            throw Error(.unavailable, "\(error)", underlyingError: error)
        }
    }

    /// Calls `completionHandler` on a background queue with copies of the pending requests.
    @preconcurrency open func getPendingTaskRequests(completionHandler: @escaping @Sendable ([BGTaskRequest]) -> Void) {
        OutstandingCalls.shared.run { completionHandler(self.pendingNow()) }
    }

    /// Returns the pending requests. As on iOS, a request is not included while a launch for it is running. The row of such a
    /// request is deleted with the result of the launch. A request with a rule is included, because it waits for the next
    /// occurrence.
    private static func pending(_ ledger: LedgerTransaction) throws -> [RequestRecord] {
        let served = Set(try ledger.liveLaunches().compactMap(\.requestToken))
        return try ledger.requests().filter { $0.recurrence != nil || !served.contains($0.token) }
    }

    /// Returns the date as the app set it. For a request with a rule, the next date is a time on the user's clock.
    private static func request(of record: RequestRecord) -> BGTaskRequest? {
        let request = BGTaskRequest.make(from: record)
        if record.recurrence == nil { request?.earliestBeginDate = record.earliestBegin.map(AppRuntime.shared.date(forApp:)) }
        return request
    }

    private func pendingNow() -> [BGTaskRequest] {
        let requests = AppRuntime.shared.read("the pending requests", for: AppRuntime.listReadTimeout) { try Self.pending($0) }
        return (requests ?? []).compactMap(Self.request(of:))
    }

    // MARK: Simulation

    /// Launches a pending request now, in the same way as at its due time. Beyond Apple: on iOS only a debugger can do this.
    /// - Returns: the agent's response, as a sentence for the user.
    /// - Throws: ``BGTaskScheduler/Error/unavailable``, also if no agent responds.
    public func simulateLaunch(forTaskWithIdentifier identifier: String) async throws -> String {
        try await send(.simulateLaunch, identifier)
    }

    /// Ends the time of a running launch now.
    /// - Throws: ``BGTaskScheduler/Error/unavailable``, also if no agent responds.
    public func simulateExpiration(forTaskWithIdentifier identifier: String) async throws -> String {
        try await send(.simulateExpire, identifier)
    }

    /// Stops the time limit of the launch while the user chooses something, for example a file. The maximum is 10 minutes. Beyond
    /// Apple.
    public func personIsChoosing(_ isChoosing: Bool) { LaunchContext.current?.setPersonChoosing(isChoosing) }

    /// Records that the current launch failed, although its action returns normally. The history shows `failed` and the reason.
    /// Outside a launch, this method has no effect. Beyond Apple: actions of SwiftUI cannot report a failure.
    public func failCurrentLaunch(_ reason: String) { LaunchContext.current?.fail(reason) }

    /// Sets what the history shows about the result of the current launch, for example "3 photos uploaded". If the method is called
    /// several times, the last text is shown. Outside a launch, this method has no effect.
    package func describeCurrentLaunch(_ result: String) { LaunchContext.current?.describe(result) }

    /// Ends the process because the current launch cannot do its work now, for a temporary reason. The launch is retried after
    /// growing pauses, as after a crash. The history shows the reason. Outside a launch, this method has no effect. Beyond Apple.
    public func abandonCurrentLaunch(_ reason: String) { LaunchContext.current?.abandon(reason) }

    /// The time on the clock that decides when requests of this process begin. In a rehearsal, or in a test that drives the app,
    /// this is the clock of the test host.
    package static var now: Date { AppRuntime.isOnTestHost ? AppRuntime.shared.now : ThisProcess.now }

    private func send(_ verb: ControlRecord.Verb, _ argument: String) async throws -> String {
        let id = try storing { try $0.addControl(verb, argument, now: AppRuntime.shared.now) }
        do {
            return try await AppRuntime.shared.waitForAgent { try $0.answer(to: id) }
        } catch let error as NoAgent {
            throw Error(.unavailable, error.description)
        }
    }

    private func check(_ record: RequestRecord) throws {
        if let date = record.earliestBegin, date.timeIntervalSince1970.isNaN {
            throw Error(.unavailable, "earliestBeginDate of \(record.identifier) is not a valid date")
        }
        guard record.spread >= 0, record.spread < 86_400 else {
            throw Error(.unavailable, "recurrenceDelay of \(record.identifier) is not between 0 s and a day")
        }
    }

    private func storing<Value>(
        beforeStart: (Value) -> Void = { _ in }, _ body: (LedgerTransaction) throws -> Value
    ) throws -> Value {
        do {
            return try AppRuntime.shared.commit(beforeStart: beforeStart, body)
        } catch {
            throw Error(.unavailable, "\(error)", underlyingError: error)
        }
    }
}

/// The maximum number of pending requests of each kind. The numbers are equal to Apple's numbers.
enum PendingLimit {
    /// Returns `nil` if the number is not limited.
    static func of(_ kind: LaunchKind) -> Int? { isLifted ? nil : kind == .appRefresh ? 1 : 10 }

    /// Lifts the limit for benchmarks and stress tests that need more requests than the limit of an app. Debug builds only.
    private static let isLifted: Bool = {
        #if DEBUG
            return ProcessInfo.processInfo.environment["BACKGROUND_UNLIMITED_REQUESTS"] == "1"
        #else
            return false
        #endif
    }()
}
