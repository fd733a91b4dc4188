import BackgroundLedger
import BackgroundNotices
import BackgroundRuntime
@_exported import Foundation
import Synchronization

/// The notification center of an app. The app's agent shows the notifications. The notifications and buttons also work after this
/// process has ended.
public final class UNUserNotificationCenter: NSObject, Sendable {
    private static var shared: UNUserNotificationCenter { AppRuntime.shared.part { UNUserNotificationCenter() } }

    private struct WeakDelegate: @unchecked Sendable {  // Unchecked, because the mutex around it guards the reference
        weak var delegate: (any UNUserNotificationCenterDelegate)?
    }

    private let held = Mutex(WeakDelegate())

    private override init() {
        super.init()
        LaunchHandlers.shared.add(.notificationResponse) { launch in
            await UNUserNotificationCenter.shared.deliverResponses(notification: launch.identifier)
        }
    }

    /// The single notification center of this app.
    public static func current() -> UNUserNotificationCenter { shared }

    /// The delegate that receives responses. The reference is weak. Set the delegate before the app's `body` is evaluated,
    /// because a process that is launched for a response calls the delegate immediately.
    public var delegate: (any UNUserNotificationCenterDelegate)? {
        get { held.withLock { $0.delegate } }
        set {
            nonisolated(unsafe) let new = newValue
            held.withLock { $0.delegate = new }
            if new != nil { ForegroundWatch.shared.begin(self) }
        }
    }

    /// Returns `false` if the user switched the app's notifications off, and otherwise `true`. Differs from Apple: the user is
    /// not asked.
    /// - Throws: nothing. The method is marked `throws` only because Apple's method is.
    public func requestAuthorization(options: UNAuthorizationOptions = []) async throws -> Bool {
        await notificationSettings().authorizationStatus == .authorized
    }

    /// Calls the handler on a background queue with the result of ``requestAuthorization(options:)``.
    @preconcurrency public func requestAuthorization(
        options: UNAuthorizationOptions = [], completionHandler: @escaping @Sendable (Bool, (any Error)?) -> Void
    ) {
        OutstandingCalls.shared.run { completionHandler(self.settingsNow().authorizationStatus == .authorized, nil) }
    }

    /// Returns the permissions for the app's notifications, as configured.
    public func notificationSettings() async -> UNNotificationSettings { settingsNow() }

    /// Calls the handler on a background queue with the permissions for the app's notifications.
    @preconcurrency public func getNotificationSettings(completionHandler: @escaping @Sendable (UNNotificationSettings) -> Void) {
        OutstandingCalls.shared.run { completionHandler(self.settingsNow()) }
    }

    /// A Boolean value that indicates whether an app can draw the content of a notification. The value is always `false`, because
    /// desktops do not support this.
    public var supportsContentExtensions: Bool { false }

    private func settingsNow() -> UNNotificationSettings {
        let settings = AppRuntime.shared.read("the settings") { try $0.fact(.settings) } ?? nil
        return UNNotificationSettings(
            authorizationStatus: settings?.notificationsEnabled ?? true ? .authorized : .denied)
    }

    // MARK: Adding

    /// Stores a notification. The agent shows the notification when it is due and a notification server is available.
    ///
    /// A request with the same identifier replaces the earlier notification, also on the screen, and alerts the user again.
    /// ``UNNotificationRequest/alertsOncePerContent`` can prevent the second alert. If the earlier notification was not shown
    /// yet, only the new notification is shown.
    /// - Throws: ``UNError``.
    public func add(_ request: UNNotificationRequest) async throws {
        let question = PresentationDecision(adding: request, self)
        let revision = try addNow(request, asks: question != nil)
        guard let question, let revision else { return }
        await PresentationRecorder.shared.record(request.identifier, revision: revision, await question.answer())
    }

    /// Adds a notification and calls the handler with the error, or with `nil`. The handler is called before this method returns.
    @preconcurrency public func add(
        _ request: UNNotificationRequest, withCompletionHandler completion: (@Sendable ((any Error)?) -> Void)? = nil
    ) {
        let question = PresentationDecision(adding: request, self)
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
            await PresentationRecorder.shared.record(request.identifier, revision: revision, await question.answer())
            calls.leave()
        }
    }

    /// - Parameter asks: `true` if the notification has to wait for the delegate's decision.
    /// - Returns: the revision of the stored notification. `nil` if the content was already shown, and the app wants each content
    ///   to be shown only once.
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

    /// Copies the files of the content into the spool, and commits the content to the ledger.
    ///
    /// - Parameter body: a closure that writes the content and returns `true` if the ledger needs the content's files.
    private func write(
        _ content: UNNotificationContent, _ body: (LedgerTransaction, NotificationContent) throws -> Bool
    ) throws {
        try UnsavedWork.current.run {
            let files = try content.attachments.map { try $0.taken() }
            // If the ledger does not need a copy, the copy is deleted when `files` is deallocated.
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
                .notificationInvalidNoDate,
                "\(type(of: trigger)) is not supported: a Linux desktop has no location or push notifications")
        }
        guard let schedule = NoticeSchedule(rule, now: now, zone: .current) else {
            throw UNError(.notificationInvalidNoDate, "no date matches the trigger")
        }
        return schedule
    }

    /// Changes the content of a notification that is on the screen or waits. The user is not alerted. Apple's API has no
    /// equivalent: on iOS, a second `add` alerts the user again.
    ///
    /// - Parameters:
    ///   - identifier: the identifier of the request. If the notification was not added, or was withdrawn, the method has no
    ///     effect.
    ///   - change: a closure that receives the current content, and returns the new content or `nil` for no change. The closure
    ///     is also called if the user has closed the notification, but then the new content is not shown.
    /// - Throws: ``UNError``, or the error that `change` throws.
    public func updateNotification(
        withIdentifier identifier: String, _ change: (UNNotificationContent) throws -> UNNotificationContent?
    ) throws {
        let found: NotificationRecord?
        do {
            found = try AppRuntime.shared.readWithRetry { try $0.notification(identifier) }
        } catch {
            throw UNError(.notificationsNotAllowed, "\(error)")
        }
        guard let record = found, !record.life.isWithdrawn,
            let new = try change(.make(from: record.content)), record.life.isChangeable
        else { return }
        try write(new) { try $0.changeNotification(identifier, $1) }
    }

    // MARK: Lists

    /// Returns the requests of notifications that are not due yet, or that wait for a notification server.
    public func pendingNotificationRequests() async -> [UNNotificationRequest] {
        list(\.willBeShown).map(UNNotificationRequest.init)
    }

    /// Returns the notifications that were shown and that the user has not pressed or closed. Notifications that the notification
    /// server has removed from the screen are included.
    public func deliveredNotifications() async -> [UNNotification] { deliveredNow() }

    private func deliveredNow() -> [UNNotification] {
        list(\.life.isUnanswered).map {
            UNNotification(date: $0.deliveredAt ?? $0.createdAt, request: UNNotificationRequest($0))
        }
    }

    /// Returns the state and the content of a notification. Apple's API has no equivalent.
    ///
    /// - Returns: `nil` if a notification with this identifier does not exist.
    package func progress(of identifier: String) -> (state: NotificationProgress, content: UNNotificationContent)? {
        let found = AppRuntime.shared.read("notification \(identifier)", { try $0.notification(identifier) })
        guard let record = found ?? nil else { return nil }
        return (NotificationProgress(record), .make(from: record.content))
    }

    /// Calls the handler on a background queue with the result of ``pendingNotificationRequests()``.
    @preconcurrency public func getPendingNotificationRequests(
        completionHandler: @escaping @Sendable ([UNNotificationRequest]) -> Void
    ) {
        OutstandingCalls.shared.run { completionHandler(self.list(\.willBeShown).map(UNNotificationRequest.init)) }
    }

    /// Calls the handler on a background queue with the result of ``deliveredNotifications()``.
    @preconcurrency public func getDeliveredNotifications(completionHandler: @escaping @Sendable ([UNNotification]) -> Void) {
        OutstandingCalls.shared.run { completionHandler(self.deliveredNow()) }
    }

    /// Removes notifications that were not shown yet, and future repetitions of notifications. If the ledger cannot be written
    /// now, the removal is stored later.
    public func removePendingNotificationRequests(withIdentifiers identifiers: [String]) { removePending(identifiers) }

    /// Removes all notifications that were not shown yet, and all future repetitions of notifications.
    public func removeAllPendingNotificationRequests() { removePending(nil) }

    /// Removes notifications from the screen. If the user has closed a notification, the stored content is deleted, so that a new
    /// request with ``UNNotificationRequest/alertsOncePerContent`` alerts the user again.
    public func removeDeliveredNotifications(withIdentifiers identifiers: [String]) {
        removeDelivered(identifiers)
    }

    /// Removes all notifications from the screen, like ``removeDeliveredNotifications(withIdentifiers:)``.
    public func removeAllDeliveredNotifications() { removeDelivered(nil) }

    private func list(_ isWanted: (NotificationRecord) -> Bool) -> [NotificationRecord] {
        let found = AppRuntime.shared.read("the notifications", for: AppRuntime.listReadTimeout) { try $0.notifications() }
        return (found ?? []).filter { !$0.isAgents && isWanted($0) }
    }

    private func removePending(_ identifiers: [String]?) {
        // An agent may have passed the notification to the notification server without recording that it was shown. If the agent
        // was killed at this moment, the next agent would show the notification again. Such a notification is also removed.
        remove(identifiers, { $0.life.isUnreported || $0.schedule?.next != nil }) { try $0.cancelComing($1, now: $2) }
    }

    private func removeDelivered(_ identifiers: [String]?) {
        remove(identifiers, \.isShown) { try $0.removeFromScreen($1, now: $2) }
    }

    /// - Parameter identifiers: the notifications to remove, or `nil` for all.
    private func remove(
        _ identifiers: [String]?, _ isWanted: @escaping @Sendable (NotificationRecord) -> Bool,
        _ change: @escaping @Sendable (LedgerTransaction, [NotificationRecord], Date) throws -> Void
    ) {
        let wanted: @Sendable (LedgerTransaction) throws -> [NotificationRecord] = { transaction in
            // The app cannot remove notifications that the agent itself created, such as summaries.
            guard let identifiers else { return try transaction.notifications().filter { !$0.isAgents && isWanted($0) } }
            return try Set(identifiers).compactMap { try transaction.notification($0) }.filter(isWanted)
        }
        // If no notification matches, the ledger is not written, because a write sends a change notification and starts an agent.
        if DurableWrites.shared.flush() == nil, let found = try? AppRuntime.shared.ledger().read(wanted), found.isEmpty {
            return
        }
        let now = AppRuntime.shared.now
        DurableWrites.shared.commit("the removal of notifications") { transaction in
            try change(transaction, wanted(transaction), now)
        }
    }

    // MARK: Categories

    /// Sets the categories of this app's notifications. A category contains buttons. The ledger stores the categories, because
    /// the agent needs the buttons after this process has ended.
    public func setNotificationCategories(_ categories: Set<UNNotificationCategory>) {
        // Apps set their categories at every start. An unchanged set is not written, because a write sends a change notification
        // and starts an agent.
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

    /// Returns the categories that the app set last.
    public func notificationCategories() async -> Set<UNNotificationCategory> { categoriesNow() }

    /// Calls the handler on a background queue with the categories that the app set last.
    @preconcurrency public func getNotificationCategories(
        completionHandler: @escaping @Sendable (Set<UNNotificationCategory>) -> Void
    ) {
        OutstandingCalls.shared.run { completionHandler(self.categoriesNow()) }
    }

    private func categoriesNow() -> Set<UNNotificationCategory> {
        // The read is retried for a long time. Many apps read all categories, add one category, and set all categories again. If
        // the read returned an empty set, the app would delete the other categories.
        let found = AppRuntime.shared.read("the categories of notifications", for: AppRuntime.listReadTimeout) {
            try $0.categoryDetails()
        }
        let details = found ?? []
        let stored = details.compactMap { try? JSONDecoder().decode(UNNotificationCategory.Stored.self, from: Data($0.utf8)) }
        return Set(stored.map { UNNotificationCategory($0) })
    }

    // MARK: The number on the icon

    /// Sets the number on the app's icon, or removes the number if the value is 0. Differs from Apple: only docks that support
    /// Unity's launcher API show the number.
    /// - Throws: ``UNError``: `badgeInputInvalid` if the badge number is below 0, `notificationsNotAllowed` if the badge number
    ///   cannot be stored.
    public func setBadgeCount(_ newBadgeCount: Int) async throws { try setBadge(newBadgeCount) }

    /// Sets the number on the app's icon and calls the handler on a background queue.
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
        guard count >= 0 else { throw UNError(.badgeInputInvalid, "a badge must be 0 or more, not \(count)") }
        do {
            try AppRuntime.shared.commit { try $0.setFact(.badge, count) }
        } catch {
            throw UNError(.notificationsNotAllowed, "\(error)")
        }
    }

    // MARK: Responses

    /// Passes the user's responses to the delegate. Returns `nil` if no delegate is set, because a scene of the app may handle
    /// the responses.
    private func deliverResponses(notification identifier: String) async -> Bool? {
        let isTest = identifier == NotificationRecord.testIdentifier
        guard isTest || delegate != nil else { return nil }
        for record in LaunchContext.undeliveredResponses(to: identifier) {
            let acknowledge: @Sendable (LedgerTransaction) throws -> Void = {
                try $0.responseWasDelivered(record.id!, now: AppRuntime.shared.now)
            }
            defer { LaunchContext.current?.acknowledgeAtEnd(acknowledge) }
            guard !isTest, let delegate else { continue }
            // If the ledger does not contain the notification any more, the response contains the notification without its
            // trigger.
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
            let (returned, hasReturned) = AsyncStream.makeStream(of: Void.self)
            LaunchContext.current?.stay { for await _ in returned {} }
            await withCheckedContinuation { continuation in
                let once = Once { continuation.resume() }
                // The delegate is called on the main thread, as on iOS, because the delegate's class is often isolated to the
                // main actor.
                let block = WorkContext().block {
                    HandledDelivery.$current.withValue(HandledDelivery(acknowledge)) {
                        receiver.userNotificationCenter(self, didReceive: response) { once.run() }
                    }
                    hasReturned.finish()
                }
                DispatchQueue.main.async(execute: block)
            }
        }
        // The process continues for a short time, because many delegates call the completion handler first and begin an upload
        // afterwards.
        if !isTest { LaunchContext.current?.stayForGrace() }
        return true
    }
}

extension JSONEncoder {
    /// An encoder that encodes equal values as equal texts.
    fileprivate static var sorted: JSONEncoder {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        return encoder
    }
}

extension NotificationRecord {
    /// A Boolean value that indicates whether the notification is or was on the screen.
    fileprivate var isShown: Bool { state == .presenting || life.wasReported }
}
