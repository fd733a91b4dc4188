import ProcessSupport
import BackgroundLedger
import BackgroundRuntime
import BackgroundScheduling
@_exported import Foundation
import Synchronization

/// Asks for launches in the background, and names who handles them.
///
/// A request that ``submit(_:)`` accepted is durable: it survives this process, the agent, logout and reboot.
///
/// Differs from Apple: a desktop has no usage learning and no energy budget. A request is launched when its
/// conditions hold, and `why` says which one does not.
///
/// Open to subclassing, as Apple's is, for the mocks of an app's tests; `BackgroundTasksTesting` has the real one in virtual time.
open class BGTaskScheduler: NSObject, @unchecked Sendable {  // because a subclass may say more; there is no state here
    /// The scheduler of this process.
    open class var shared: BGTaskScheduler { ofThisProcess }

    private static let ofThisProcess = {
        // Foundation learns who this app is: what is registered is often named after its bundle's identifier.
        _ = AppManifest.current
        return BGTaskScheduler()
    }()

    /// For a subclass. Differs from Apple: nobody there can make one.
    public override init() { super.init() }

    // MARK: Handlers

    /// Names the handler of a task. Call before ``run()`` or before the app's scenes are built.
    ///
    /// The handler of a wildcard (`app.export.*`) serves what it covers and no handler of its own has; of several the longest. ``BGTask/identifier`` is
    /// the one that was submitted.
    ///
    /// - Parameters:
    ///   - identifier: of the permitted list, or under a wildcard of it; a wildcard itself, as of iOS 26, too.
    ///   - queue: where the handler runs; `nil`: a background queue of the framework's.
    ///   - launchHandler: does the work and ends with ``BGTask/setTaskCompleted(success:)``.
    /// - Returns: `false` when the permitted list does not cover the identifier.
    /// - Precondition: not registered before; and not after ``run()``, unless it is a wildcard or only a wildcard of the list permits it,
    ///   as for continued processing.
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

    /// Hands control to the launch this process was started for; the process ends with it. Beyond Apple.
    ///
    /// For a plain `main.swift`: register, then call this. In a process that the agent did not launch it
    /// returns when the continued processing that the process asked for has ended, mostly at once. Registering afterwards
    /// traps.
    public func run() {
        if TaskHandlers.shared.hasActions { BackgroundLaunch.tellWhetherTimeMatters() }
        BackgroundLaunch.serveLaunch()
        ContinuedTasks.shared.runUntilIdle()
    }

    // MARK: Requests

    /// Makes a request durable. One with the same identifier is replaced.
    ///
    /// Without `earliestBeginDate` it begins as soon as its conditions hold; but one that a launch submits, of an identifier that was
    /// launched so before, waits for five minutes, which double with each such launch of the last day up to an hour. On iOS the system
    /// decides that; without a pause an app that asks for its next refresh in the handler of the last would run for ever.
    ///
    /// Cost: one transaction, synced to disk. If no agent runs one is started.
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
            throw Error(.notPermitted, "\(taskRequest.identifier): nobody is entitled to health research here")
        }
        if let missing = AppRuntime.shared.missingAgent { throw Error(.unavailable, "nobody would wake this app: \(missing)") }
        let now = AppRuntime.shared.now
        let record = taskRequest.record(now: now, AppRuntime.shared.date(fromApp:))
        try check(record)
        let launch = LaunchContext.current?.id
        let outcome = try storing(beforeStart: { if $0 == nil { AppRuntime.shared.comeBackAtLogin() } }) {
            transaction -> Error? in
            if let limit = PendingLimit.of(record.kind) {
                let others = try transaction.pendingCount(of: record.kind, besides: record.identifier, upTo: limit)
                guard others < limit else {
                    return Error(
                        .tooManyPendingTaskRequests, "\(others) \(record.kind.rawValue) requests are pending, \(limit) may be")
                }
            }
            try transaction.submit(record, in: launch, now: now, zone: AppRuntime.shared.zone)
            return nil
        }
        if let outcome { throw outcome }
    }

    /// The form of SDK 27, on the caller's own thread or actor: it is durable when this returns.
    /// - Throws: ``BGTaskScheduler/Error``.
    nonisolated(nonsending)
        open func submitTaskRequest(_ taskRequest: BGTaskRequest) async throws
    { try submit(taskRequest) }

    /// The form of SDK 27 with a completion handler, called on a background queue.
    ///
    /// Differs from Apple: the request is durable when this returns, so that a process which then ends has asked.
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

    /// Removes a pending request; a running launch is not stopped.
    open func cancel(taskRequestWithIdentifier identifier: String) {
        DurableWrites.shared.commit("the cancelling of \(identifier)") { _ = try $0.deleteRequest(identifier) }
    }

    /// The same for callers who must know that it is done. Beyond Apple.
    /// - Throws: ``BGTaskScheduler/Error/unavailable``.
    public func removeTaskRequest(withIdentifier identifier: String) throws {
        _ = try storing { try $0.deleteRequest(identifier) }
    }

    /// Removes every pending request; what runs goes on.
    open func cancelAllTaskRequests() {
        DurableWrites.shared.commit("the cancelling of all requests") { _ = try $0.deleteAllRequests() }
    }

    /// Copies of what is pending: changing them changes nothing until they are submitted.
    open func pendingTaskRequests() async -> [BGTaskRequest] { pendingNow() }

    /// A copy of the pending request of this identifier; `nil`: none is pending. Beyond Apple.
    ///
    /// Cost: one look into the ledger, a fraction of a millisecond.
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

    /// The same for callers that do not await; `completionHandler` is called on a background queue.
    @preconcurrency open func getPendingTaskRequests(completionHandler: @escaping @Sendable ([BGTaskRequest]) -> Void) {
        OutstandingCalls.shared.run { completionHandler(self.pendingNow()) }
    }

    /// What a launch serves is not pending any more for whoever asks, as on iOS; its row goes with the launch's result. One that recurs is pending for
    /// the next time.
    private static func pending(_ ledger: LedgerTransaction) throws -> [RequestRecord] {
        let served = Set(try ledger.liveLaunches().compactMap(\.requestToken))
        return try ledger.requests().filter { $0.recurrence != nil || !served.contains($0.token) }
    }

    /// The app's own date comes back as the app gave it. A rule's next moment is one of the person's clock.
    private static func request(of record: RequestRecord) -> BGTaskRequest? {
        let request = BGTaskRequest.make(from: record)
        if record.recurrence == nil { request?.earliestBeginDate = record.earliestBegin.map(AppRuntime.shared.date(forApp:)) }
        return request
    }

    private func pendingNow() -> [BGTaskRequest] {
        let requests = AppRuntime.shared.read("the pending requests", for: AppRuntime.patienceForLists) { try Self.pending($0) }
        return (requests ?? []).compactMap(Self.request(of:))
    }

    // MARK: Simulation

    /// Launches a pending request now, as the system would. Beyond Apple's debugger-only call.
    /// - Returns: the agent's answer, in words.
    /// - Throws: ``BGTaskScheduler/Error/unavailable``, also where no agent answers.
    public func simulateLaunch(forTaskWithIdentifier identifier: String) async throws -> String {
        try await ask(.simulateLaunch, identifier)
    }

    /// Ends the running launch's time now.
    /// - Throws: ``BGTaskScheduler/Error/unavailable``, also where no agent answers.
    public func simulateExpiration(forTaskWithIdentifier identifier: String) async throws -> String {
        try await ask(.simulateExpire, identifier)
    }

    /// While a person chooses something (a file, say) the launch's time does not run out; 10 minutes at most. Beyond Apple.
    public func personIsChoosing(_ isChoosing: Bool) { LaunchContext.current?.setPersonChoosing(isChoosing) }

    /// The launch this process runs could not do its work, though its action returns: the history then says `failed`, and
    /// why. Beyond Apple, whose SwiftUI actions have no success flag. No effect outside a launch.
    public func failCurrentLaunch(_ reason: String) { LaunchContext.current?.fail(reason) }

    /// The launch this process runs cannot do its work now, for a reason that may pass: the process ends, and the launch is made up for
    /// with growing pauses, as after a crash. The history says why. Beyond Apple. Outside a launch it does nothing.
    public func abandonCurrentLaunch(_ reason: String) { LaunchContext.current?.abandon(reason) }

    /// The time by which requests of this process begin: in a rehearsal, or in a test that drives the app, that of its machine.
    package static var now: Date { AppRuntime.isOnTestHost ? AppRuntime.shared.now : ThisProcess.now }

    private func ask(_ verb: ControlRecord.Verb, _ argument: String) async throws -> String {
        let id = try storing { try $0.ask(verb, argument, now: AppRuntime.shared.now) }
        do {
            return try await AppRuntime.shared.waitForAgent { try $0.answer(to: id) }
        } catch let error as NoAgent {
            throw Error(.unavailable, error.description)
        }
    }

    private func check(_ record: RequestRecord) throws {
        if let date = record.earliestBegin, date.timeIntervalSince1970.isNaN {
            throw Error(.unavailable, "earliestBeginDate of \(record.identifier) is not a date")
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

/// How many requests of a kind may be pending: Apple's numbers.
enum PendingLimit {
    /// `nil`: as many as there are.
    static func of(_ kind: LaunchKind) -> Int? { isLifted ? nil : kind == .appRefresh ? 1 : 10 }

    /// For runs that measure and torture with more than an app may have. Debug builds only.
    private static let isLifted: Bool = {
        #if DEBUG
            return ProcessInfo.processInfo.environment["BACKGROUND_UNLIMITED_REQUESTS"] == "1"
        #else
            return false
        #endif
    }()
}
