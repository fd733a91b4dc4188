import ProcessSupport
import BackgroundLedger
import BackgroundRuntime
import BackgroundScheduling
@_exported import Foundation
import Synchronization

/// Submits requests for background launches and registers the handlers of the launches.
///
/// ``submit(_:)`` stores each accepted request on the disk. The request is not lost if this process or the agent ends, or if the
/// user logs out or restarts the machine.
///
/// Differs from Apple: the scheduler does not learn when the user uses the app, and has no energy budget. The agent launches a
/// request when the request's conditions are met. The command `why` shows the conditions that are not met.
///
/// The class is open, like Apple's class, so that tests of an app can mock it. `BackgroundTasksTesting` runs the real scheduler
/// in virtual time.
open class BGTaskScheduler: NSObject, @unchecked Sendable {  // because this class has no mutable state, but a subclass may have
    /// The scheduler of this process.
    open class var shared: BGTaskScheduler { ofThisProcess }

    private static let ofThisProcess = {
        // The app's identity is set in Foundation first, because apps often derive request identifiers from the bundle
        // identifier.
        _ = AppManifest.current
        return BGTaskScheduler()
    }()

    /// Creates an instance of a subclass. Differs from Apple: on iOS, an app cannot create a scheduler.
    public override init() { super.init() }

    // MARK: Handlers

    /// Registers the handler of a task. Call this method before ``run()`` or before the app's scenes are built.
    ///
    /// An identifier without a handler uses the handler of a wildcard (`app.export.*`) that matches the identifier. If several
    /// wildcards match, the longest wildcard is used. ``BGTask/identifier`` is the identifier that the app submitted.
    ///
    /// - Parameters:
    ///   - identifier: an identifier, or a wildcard as in iOS 26. The app's list of permitted identifiers must contain the
    ///     identifier or a wildcard that matches it.
    ///   - queue: the queue on which the handler runs, or `nil` for a background queue of the framework.
    ///   - launchHandler: the code that does the work and then calls ``BGTask/setTaskCompleted(success:)``.
    /// - Returns: `false` if the manifest does not permit the identifier.
    /// - Precondition: The identifier was not registered before, and ``run()`` was not called before. A handler of continued
    ///   processing can also be registered after ``run()``. Such a handler has a wildcard, or an identifier that only a wildcard
    ///   permits.
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
    /// Apple's API has no equivalent.
    ///
    /// In a `main.swift`, register the handlers, and then call this method. If the agent did not launch the process, the method
    /// returns when the continued processing of this process has ended, usually immediately. If the app registers a handler after
    /// this call, the program stops with an error.
    public func run() {
        if TaskHandlers.shared.hasActions { BackgroundLaunch.recordTimeChangeInterest() }
        BackgroundLaunch.serveLaunch()
        ContinuedTasks.shared.runUntilIdle()
    }

    // MARK: Requests

    /// Stores a request in the agent's database (ledger). A pending request with the same identifier is replaced.
    ///
    /// A request without `earliestBeginDate` begins as soon as the request's conditions are met. If a launch submits such a
    /// request, and the agent already launched this identifier without a date, the request first waits for five minutes. The
    /// pause doubles with each such launch of the last 24 hours, up to an hour. On iOS, the system decides the length of the
    /// pause. Without the pause, an app that submits the next refresh in each handler would be launched again and again.
    ///
    /// Cost: one transaction that is synced to the disk. If no agent is running, this method starts an agent.
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
            throw Error(.notPermitted, "\(taskRequest.identifier): health research tasks are not available on Linux")
        }
        if let missing = AppRuntime.shared.missingAgent { throw Error(.unavailable, "no agent can launch this app: \(missing)") }
        let now = AppRuntime.shared.now
        let record = taskRequest.record(now: now, AppRuntime.shared.date(fromApp:))
        let folders = taskRequest.watchedFolders.map(\.record)
        try check(record, folders)
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
            try transaction.setWatchedFolders(folders, of: record.identifier)
            return nil
        }
        if let outcome { throw outcome }
    }

    /// Stores a request. The method runs on the thread or actor of the caller, and the request is on the disk when the method
    /// returns. Apple's SDK 27 also has this async method.
    /// - Throws: ``BGTaskScheduler/Error``.
    nonisolated(nonsending)
        open func submitTaskRequest(_ taskRequest: BGTaskRequest) async throws
    { try submit(taskRequest) }

    /// Stores a request, and then calls a handler on a background queue. Apple's SDK 27 has the same method.
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

    /// Removes a pending request, and throws an error if the request cannot be removed. Apple's API has no equivalent.
    /// - Throws: ``BGTaskScheduler/Error/unavailable``.
    public func removeTaskRequest(withIdentifier identifier: String) throws {
        _ = try storing { try $0.deleteRequest(identifier) }
    }

    /// Removes every pending request. Running launches continue.
    open func cancelAllTaskRequests() {
        DurableWrites.shared.commit("the cancellation of all requests") { _ = try $0.deleteAllRequests() }
    }

    /// Returns copies of the pending requests. To change a pending request, change the copy and submit the copy.
    open func pendingTaskRequests() async -> [BGTaskRequest] { pendingNow() }

    /// Returns a copy of the pending request with this identifier, or `nil` if no request with this identifier is pending.
    /// Apple's API has no equivalent.
    ///
    /// Cost: one read of the ledger, a fraction of a millisecond.
    /// - Throws: ``BGTaskScheduler/Error/unavailable``.
    public func pendingTaskRequest(withIdentifier identifier: String) throws -> BGTaskRequest? {
        do {
            return try AppRuntime.shared.ledger().read { ledger in
                try Self.pending(ledger).first { $0.record.identifier == identifier }
            }.flatMap(Self.request(of:))
        } catch {
            throw Error(.unavailable, "\(error)", underlyingError: error)
        }
    }

    /// Calls `completionHandler` on a background queue with copies of the pending requests.
    @preconcurrency open func getPendingTaskRequests(completionHandler: @escaping @Sendable ([BGTaskRequest]) -> Void) {
        OutstandingCalls.shared.run { completionHandler(self.pendingNow()) }
    }

    /// Returns the pending requests. As on iOS, a request is not included while its launch is running, although the ledger
    /// contains the request until the launch has a result. A request with a rule is always included, because it also waits for
    /// its next occurrence.
    private static func pending(_ ledger: LedgerTransaction) throws -> [Pending] {
        let served = Set(try ledger.liveLaunches().compactMap(\.requestToken))
        let folders = Dictionary(grouping: try ledger.watchedFolders(), by: \.request)
        return try ledger.requests().filter { $0.recurrence != nil || !served.contains($0.token) }
            .map { ($0, (folders[$0.identifier] ?? []).map(\.folder)) }
    }

    private typealias Pending = (record: RequestRecord, folders: [WatchedFolder])

    /// Returns the request with the begin date that the app set. If the request has a rule, the begin date is the date of the
    /// next occurrence.
    private static func request(of pending: Pending) -> BGTaskRequest? {
        let record = pending.record
        let request = BGTaskRequest.make(from: record)
        request?.watchedFolders = pending.folders.map(BGWatchedFolder.init)
        if record.recurrence == nil { request?.earliestBeginDate = record.earliestBegin.map(AppRuntime.shared.date(forApp:)) }
        return request
    }

    private func pendingNow() -> [BGTaskRequest] {
        let requests = AppRuntime.shared.read("the pending requests", for: AppRuntime.listReadTimeout) { try Self.pending($0) }
        return (requests ?? []).compactMap(Self.request(of:))
    }

    // MARK: Simulation

    /// Launches a pending request now, in the same way as the agent launches a due request. Apple's API has no equivalent: on iOS
    /// only a debugger can do this.
    /// - Returns: the agent's response, as a sentence for the user.
    /// - Throws: ``BGTaskScheduler/Error/unavailable`` if the ledger cannot be used or no agent responds.
    public func simulateLaunch(forTaskWithIdentifier identifier: String) async throws -> String {
        try await send(.simulateLaunch, identifier)
    }

    /// Ends a running launch now, in the same way as the agent ends a launch at the time limit.
    /// - Throws: ``BGTaskScheduler/Error/unavailable`` if the ledger cannot be used or no agent responds.
    public func simulateExpiration(forTaskWithIdentifier identifier: String) async throws -> String {
        try await send(.simulateExpire, identifier)
    }

    /// Pauses the time limit of the launch while the user chooses something, for example a file. The longest pause is 10 minutes.
    /// Apple's API has no equivalent.
    public func personIsChoosing(_ isChoosing: Bool) { LaunchContext.current?.setPersonChoosing(isChoosing) }

    /// Records that the current launch failed, although its action returns normally. The history shows `failed` and the reason.
    /// If the agent did not launch the process, this method has no effect. Apple's API has no equivalent: an action of SwiftUI
    /// cannot report a failure.
    public func failCurrentLaunch(_ reason: String) { LaunchContext.current?.fail(reason) }

    /// Sets what the history shows about the result of the current launch, for example "3 photos uploaded". If the app calls the
    /// method several times, the history shows the last text. If the agent did not launch the process, this method has no effect.
    package func describeCurrentLaunch(_ result: String) { LaunchContext.current?.describe(result) }

    /// Ends the process because the current launch cannot do the work now, for a temporary reason. The agent retries the launch
    /// after growing pauses, as after a crash. The history shows the reason. If the agent did not launch the process, this method
    /// has no effect. Apple's API has no equivalent.
    public func abandonCurrentLaunch(_ reason: String) { LaunchContext.current?.abandon(reason) }

    /// The current time of the clock that decides when requests of this process begin. A test host sets this clock during a test,
    /// and a rehearsal sets this clock for its processes.
    package static var now: Date { AppRuntime.isOnTestHost ? AppRuntime.shared.now : ThisProcess.now }

    private func send(_ verb: ControlRecord.Verb, _ argument: String) async throws -> String {
        let id = try storing { try $0.addControl(verb, argument, now: AppRuntime.shared.now) }
        do {
            return try await AppRuntime.shared.waitForAgent { try $0.answer(to: id) }
        } catch let error as NoAgent {
            throw Error(.unavailable, error.description)
        }
    }

    private func check(_ record: RequestRecord, _ folders: [WatchedFolder]) throws {
        if !folders.isEmpty, record.recurrence == nil {
            throw Error(.unavailable, "\(record.identifier) has watched folders, so the request needs a recurrence")
        }
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
    /// Returns the maximum number of pending requests of one kind, or `nil` if the number is not limited.
    static func of(_ kind: LaunchKind) -> Int? { isLifted ? nil : kind == .appRefresh ? 1 : 10 }

    /// `true` if the limit is removed, because a benchmark or a stress test needs more requests. Only debug builds can remove the
    /// limit.
    private static let isLifted: Bool = {
        #if DEBUG
            return ProcessInfo.processInfo.environment["BACKGROUND_UNLIMITED_REQUESTS"] == "1"
        #else
            return false
        #endif
    }()
}
