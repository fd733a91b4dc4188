import BackgroundLedger
import BackgroundNotices
import BackgroundRuntime
@_exported import Foundation
import Synchronization

/// Desktop notifications, sent and kept by the app's agent: they stay, with their buttons, when this process ends.
public final class UNUserNotificationCenter: NSObject, Sendable {
    private static var shared: UNUserNotificationCenter { AppRuntime.shared.part { UNUserNotificationCenter() } }

    private struct WeakDelegate: @unchecked Sendable {  // because the mutex around it guards the reference
        weak var delegate: (any UNUserNotificationCenterDelegate)?
    }

    private let held = Mutex(WeakDelegate())

    private override init() {
        super.init()
        LaunchHandlers.shared.add(.notificationResponse) { launch in
            await UNUserNotificationCenter.shared.deliverResponses(notification: launch.identifier)
        }
    }

    /// The one center of this app.
    public static func current() -> UNUserNotificationCenter { shared }

    /// Who is told of responses; held weakly. Set it before the app's `body` has run: a launch for a button tells it at once.
    public var delegate: (any UNUserNotificationCenterDelegate)? {
        get { held.withLock { $0.delegate } }
        set {
            nonisolated(unsafe) let new = newValue
            held.withLock { $0.delegate = new }
            if new != nil { ForegroundWatch.shared.begin(self) }
        }
    }

    /// Differs from Apple: a desktop asks nobody. `true` unless the person switched the app's notifications off.
    /// - Throws: nothing: the signature is Apple's.
    public func requestAuthorization(options: UNAuthorizationOptions = []) async throws -> Bool {
        await notificationSettings().authorizationStatus == .authorized
    }

    /// The same for callers that do not await; the handler is called on a background queue.
    @preconcurrency public func requestAuthorization(
        options: UNAuthorizationOptions = [], completionHandler: @escaping @Sendable (Bool, (any Error)?) -> Void
    ) {
        OutstandingCalls.shared.run { completionHandler(self.settingsNow().authorizationStatus == .authorized, nil) }
    }

    /// What the person allows, as configured.
    public func notificationSettings() async -> UNNotificationSettings { settingsNow() }

    /// The same for callers that do not await; the handler is called on a background queue.
    @preconcurrency public func getNotificationSettings(completionHandler: @escaping @Sendable (UNNotificationSettings) -> Void) {
        OutstandingCalls.shared.run { completionHandler(self.settingsNow()) }
    }

    /// `false`: nothing draws content of an app's own.
    public var supportsContentExtensions: Bool { false }

    private func settingsNow() -> UNNotificationSettings {
        let settings = AppRuntime.shared.read("the settings") { try $0.fact(.settings) } ?? nil
        return UNNotificationSettings(
            authorizationStatus: settings?.notificationsEnabled ?? true ? .authorized : .denied)
    }

    // MARK: Adding

    /// Makes a notification durable; the agent shows it when its time has come and a server is there.
    ///
    /// The same identifier again replaces the earlier one, on the screen too, and alerts again, unless it is a request that
    /// ``UNNotificationRequest/alertsOncePerContent``. One that was not shown yet is shown once.
    /// - Throws: ``UNError``.
    public func add(_ request: UNNotificationRequest) async throws {
        let question = ForegroundQuestion(adding: request, self)
        let revision = try addNow(request, asks: question != nil)
        guard let question, let revision else { return }
        await SettledAnswers.shared.settle(request.identifier, revision: revision, await question.answer())
    }

    /// The same with a handler, called with the error or `nil` before this returns.
    @preconcurrency public func add(
        _ request: UNNotificationRequest, withCompletionHandler completion: (@Sendable ((any Error)?) -> Void)? = nil
    ) {
        let question = ForegroundQuestion(adding: request, self)
        let revision: Int?
        do {
            revision = try addNow(request, asks: question != nil)
            completion?(nil)
        } catch {
            completion?(error)
            return
        }
        guard let question, let revision else { return }
        let calls = OutstandingCalls.shared
        calls.enter()
        Task {
            await SettledAnswers.shared.settle(request.identifier, revision: revision, await question.answer())
            calls.leave()
        }
    }

    /// - Parameter asks: it waits for what the delegate says.
    /// - Returns: its revision; `nil`: it was told already, and nothing comes of it.
    private func addNow(_ request: UNNotificationRequest, asks: Bool) throws -> Int? {
        let now = AppRuntime.shared.now
        let schedule = try Self.schedule(of: request.trigger, now: now)
        var revision: Int?
        try write(request.content) { transaction, content in
            let isKept = try transaction.addNotification(
                request.identifier, content, dueAt: nil, schedule: schedule, oncePerContent: request.alertsOncePerContent,
                heldUntil: asks ? now.addingTimeInterval(NoticePresentation.patience) : nil, now: now)
            revision = isKept ? try transaction.notification(request.identifier)?.revision : nil
            return isKept
        }
        return revision
    }

    /// Copies its files, and commits.
    ///
    /// - Parameter body: `true`: this content, with its files, is kept.
    private func write(
        _ content: UNNotificationContent, _ body: (LedgerTransaction, NotificationContent) throws -> Bool
    ) throws {
        try Beginnings.current.run {
            let files = try content.attachments.map { try $0.taken() }
            // What is not kept goes with `files`.
            let record = try content.record(files.map(\.attachment))
            do {
                try AppRuntime.shared.commit(beforeStart: { isKept in if isKept { for file in files { file.copy.keep() } } }) {
                    try body($0, record)
                }
            } catch {
                throw UNError(.notificationsNotAllowed, "\(error)")
            }
        }
    }

    private static func schedule(of trigger: UNNotificationTrigger?, now: Date) throws -> NoticeSchedule? {
        guard let trigger else { return nil }
        guard let rule = trigger.rule else {
            throw UNError(
                .notificationInvalidNoDate, "no desktop tells of places, and nobody sends: \(type(of: trigger)) is not supported")
        }
        guard let schedule = NoticeSchedule(rule, now: now, zone: .current) else {
            throw UNError(.notificationInvalidNoDate, "no date is one that the trigger asks for")
        }
        return schedule
    }

    /// Changes what a notification says that stands on the screen, or waits, without an alert. Beyond Apple: adding it again would alert again.
    ///
    /// - Parameters:
    ///   - identifier: its request's. Nothing happens where nobody added it, or it was taken back.
    ///   - change: is given what it says, and returns what it is to say; `nil`: the same. Called also where the person has closed it:
    ///     what it returns is not shown then.
    /// - Throws: ``UNError``, or what `change` throws.
    public func updateNotification(
        withIdentifier identifier: String, _ change: (UNNotificationContent) throws -> UNNotificationContent?
    ) throws {
        let found: NotificationRecord?
        do {
            found = try AppRuntime.shared.patientRead { try $0.notification(identifier) }
        } catch {
            throw UNError(.notificationsNotAllowed, "\(error)")
        }
        guard let record = found, !record.life.isTakenBack,
            let new = try change(.make(from: record.content)), record.life.isChangeable
        else { return }
        try write(new) { try $0.changeNotification(identifier, $1) }
    }

    // MARK: Lists

    /// Those that wait for their time, or for a server.
    public func pendingNotificationRequests() async -> [UNNotificationRequest] {
        list(\.isComing).map(UNNotificationRequest.init)
    }

    /// Those that the person was told of and has not answered: they stand on the screen, or its server has taken them off by itself. What the
    /// person has pressed or closed is not among them.
    public func deliveredNotifications() async -> [UNNotification] { deliveredNow() }

    private func deliveredNow() -> [UNNotification] {
        list(\.life.isUnanswered).map {
            UNNotification(date: $0.deliveredAt ?? $0.createdAt, request: UNNotificationRequest($0))
        }
    }

    /// Returns the state and the content of a notification. Beyond Apple.
    ///
    /// - Returns: `nil` if there is no notification with this identifier.
    package func progress(of identifier: String) -> (state: NotificationProgress, content: UNNotificationContent)? {
        let found = AppRuntime.shared.read("notification \(identifier)", { try $0.notification(identifier) })
        guard let record = found ?? nil else { return nil }
        return (NotificationProgress(record), .make(from: record.content))
    }

    /// ``pendingNotificationRequests()`` for callers that do not await; the handler is called on a background queue.
    @preconcurrency public func getPendingNotificationRequests(
        completionHandler: @escaping @Sendable ([UNNotificationRequest]) -> Void
    ) {
        OutstandingCalls.shared.run { completionHandler(self.list(\.isComing).map(UNNotificationRequest.init)) }
    }

    /// ``deliveredNotifications()`` for callers that do not await; the handler is called on a background queue.
    @preconcurrency public func getDeliveredNotifications(completionHandler: @escaping @Sendable ([UNNotification]) -> Void) {
        OutstandingCalls.shared.run { completionHandler(self.deliveredNow()) }
    }

    /// Takes back those that were not shown yet, and the next showings of those that repeat. What cannot be written now is written later.
    public func removePendingNotificationRequests(withIdentifiers identifiers: [String]) { removePending(identifiers) }

    /// The same of all.
    public func removeAllPendingNotificationRequests() { removePending(nil) }

    /// Takes these off the screen. Those that a person has closed are forgotten, so that a request that
    /// ``UNNotificationRequest/alertsOncePerContent`` alerts again.
    public func removeDeliveredNotifications(withIdentifiers identifiers: [String]) {
        removeDelivered(identifiers)
    }

    /// Takes all off the screen, as ``removeDeliveredNotifications(withIdentifiers:)`` does.
    public func removeAllDeliveredNotifications() { removeDelivered(nil) }

    private func list(_ isWanted: (NotificationRecord) -> Bool) -> [NotificationRecord] {
        let found = AppRuntime.shared.read("the notifications", for: AppRuntime.patienceForLists) { try $0.notifications() }
        return (found ?? []).filter { !$0.isAgents && isWanted($0) }
    }

    private func removePending(_ identifiers: [String]?) {
        // Also one that was handed to a server, which counts as delivered: where the agent that did so is gone, it waits again.
        remove(identifiers, { $0.life.isUntold || $0.schedule?.next != nil }) { try $0.cancelComing($1, now: $2) }
    }

    private func removeDelivered(_ identifiers: [String]?) {
        remove(identifiers, \.isShown) { try $0.takeOffScreen($1, now: $2) }
    }

    /// - Parameter identifiers: of these alone; `nil`: of all.
    private func remove(
        _ identifiers: [String]?, _ isWanted: @escaping @Sendable (NotificationRecord) -> Bool,
        _ change: @escaping @Sendable (LedgerTransaction, [NotificationRecord], Date) throws -> Void
    ) {
        let wanted: @Sendable (LedgerTransaction) throws -> [NotificationRecord] = { transaction in
            // What the agent itself says, and tells of them in a summary, is not the app's.
            guard let identifiers else { return try transaction.notifications().filter { !$0.isAgents && isWanted($0) } }
            return try Set(identifiers).compactMap { try transaction.notification($0) }.filter(isWanted)
        }
        // What is not there needs no write, which would ring the bell and start an agent.
        if DurableWrites.shared.settle() == nil, let found = try? AppRuntime.shared.ledger().read(wanted), found.isEmpty {
            return
        }
        let now = AppRuntime.shared.now
        DurableWrites.shared.commit("the removal of notifications") { transaction in
            try change(transaction, wanted(transaction), now)
        }
    }

    // MARK: Categories

    /// The buttons of this app's notifications, by category. Durable: the agent needs them when this process is gone.
    public func setNotificationCategories(_ categories: Set<UNNotificationCategory>) {
        // Set at every start of an app: writing only what changed rings no bell and starts no agent.
        let wanted = categories.map { category in
            let details = (try? JSONEncoder.sorted.encode(category.stored)).map { String(decoding: $0, as: UTF8.self) }
            return (category.identifier, category.actions.map(\.button), details)
        }
        DurableWrites.shared.commit("the buttons of notifications", startsAgent: false) { transaction in
            for (identifier, actions, details) in wanted {
                try transaction.setCategory(identifier, actions: actions, details: details)
            }
            try transaction.deleteCategories(except: Set(wanted.map(\.0)))
        }
    }

    /// Those that were set last.
    public func notificationCategories() async -> Set<UNNotificationCategory> { categoriesNow() }

    /// The same for callers that do not await; the handler is called on a background queue.
    @preconcurrency public func getNotificationCategories(
        completionHandler: @escaping @Sendable (Set<UNNotificationCategory>) -> Void
    ) {
        OutstandingCalls.shared.run { completionHandler(self.categoriesNow()) }
    }

    private func categoriesNow() -> Set<UNNotificationCategory> {
        // An app that adds one of its own sets all of them again.
        let found = AppRuntime.shared.read("the categories of notifications", for: AppRuntime.patienceForLists) {
            try $0.categoryDetails()
        }
        let details = found ?? []
        let stored = details.compactMap { try? JSONDecoder().decode(UNNotificationCategory.Stored.self, from: Data($0.utf8)) }
        return Set(stored.map { UNNotificationCategory($0) })
    }

    // MARK: The number on the icon

    /// A number on the app's icon; 0: none. Differs from Apple: kept, and shown by docks that know Unity's launcher.
    /// - Throws: ``UNError``: `badgeInputInvalid` below 0, `notificationsNotAllowed` where it cannot be written.
    public func setBadgeCount(_ newBadgeCount: Int) async throws { try setBadge(newBadgeCount) }

    /// The same for callers that do not await; the handler is called on a background queue.
    @preconcurrency public func setBadgeCount(
        _ newBadgeCount: Int, withCompletionHandler completion: (@Sendable ((any Error)?) -> Void)? = nil
    ) {
        let outcome = Result { try setBadge(newBadgeCount) }
        OutstandingCalls.shared.run {
            switch outcome {
            case .success: completion?(nil)
            case .failure(let error): completion?(error)
            }
        }
    }

    private func setBadge(_ count: Int) throws {
        guard count >= 0 else { throw UNError(.badgeInputInvalid, "a badge counts from 0, and not \(count)") }
        do {
            try AppRuntime.shared.commit { try $0.setFact(.badge, count) }
        } catch {
            throw UNError(.notificationsNotAllowed, "\(error)")
        }
    }

    // MARK: Responses

    /// `nil`: nobody listens here. A scene of the app may.
    private func deliverResponses(notification identifier: String) async -> Bool? {
        if identifier == NotificationRecord.testIdentifier {
            for record in LaunchContext.undeliveredResponses(to: identifier) {
                LaunchContext.current?.acknowledgeAtEnd { try $0.responseWasDelivered(record.id!, now: AppRuntime.shared.now) }
            }
            return true
        }
        guard let delegate else { return nil }
        for record in LaunchContext.undeliveredResponses(to: identifier) {
            // The row may be gone by now, or replaced: its trigger is told where it is the one of this content.
            let row = AppRuntime.shared.read("a notification", { try $0.notification(record.notification) }) ?? nil
            let trigger = row?.schedule.map { UNNotificationTrigger.make(from: $0.trigger) }
            let request = UNNotificationRequest(
                identifier: record.notification, content: .make(from: record.content), trigger: trigger)
            let notification = UNNotification(date: record.createdAt, request: request)
            let response =
                record.userText.map {
                    UNTextInputNotificationResponse(notification: notification, actionIdentifier: record.action, userText: $0)
                } ?? UNNotificationResponse(notification: notification, actionIdentifier: record.action)
            nonisolated(unsafe) let receiver = delegate
            await withCheckedContinuation { continuation in
                let once = Once { continuation.resume() }
                // On the main thread, as on iOS: real delegates are isolated to it.
                let block = WorkContext().block {
                    receiver.userNotificationCenter(self, didReceive: response) { once.run() }
                }
                DispatchQueue.main.async(execute: block)
            }
            LaunchContext.current?.acknowledgeAtEnd { try $0.responseWasDelivered(record.id!, now: AppRuntime.shared.now) }
        }
        return true
    }
}

/// A handler that some call twice.
private final class Once: Sendable {
    private let body: Mutex<(@Sendable () -> Void)?>

    init(_ body: @escaping @Sendable () -> Void) { self.body = Mutex(body) }

    func run() {
        let body = body.withLock { body in
            defer { body = nil }
            return body
        }
        body?()
    }
}

extension JSONEncoder {
    /// Equal values are equal texts.
    fileprivate static var sorted: JSONEncoder {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        return encoder
    }
}

extension NotificationRecord {
    /// It is, or was, on the screen.
    fileprivate var isShown: Bool { state == .presenting || life.isTold }
}
