import BackgroundLedger
import BackgroundNotices
import BackgroundRuntime
import Foundation
import Synchronization

/// What an app asks for. Differs from Apple: a desktop grants all or nothing.
public struct UNAuthorizationOptions: OptionSet, Sendable {
    public let rawValue: UInt
    public init(rawValue: UInt) { self.rawValue = rawValue }
    /// A number on the app's icon.
    public static let badge = UNAuthorizationOptions(rawValue: 1)
    /// Sounds.
    public static let sound = UNAuthorizationOptions(rawValue: 2)
    /// Notifications on the screen.
    public static let alert = UNAuthorizationOptions(rawValue: 4)
    /// Alerts that are heard in quiet hours, too.
    public static let criticalAlert = UNAuthorizationOptions(rawValue: 16)
    /// Quiet notifications, without a question.
    public static let provisional = UNAuthorizationOptions(rawValue: 64)
}

/// Whether the person lets the app notify.
public enum UNAuthorizationStatus: Int, Sendable {
    case notDetermined = 0
    case denied = 1
    case authorized = 2
    case provisional = 3
    case ephemeral = 4
}

/// What the person allows.
public final class UNNotificationSettings: Sendable {
    /// Whether the person lets the app notify.
    public let authorizationStatus: UNAuthorizationStatus

    init(authorizationStatus: UNAuthorizationStatus) { self.authorizationStatus = authorizationStatus }
}

/// Hears what a person did with a notification. Set it before the app's scenes are built, or the response that
/// launched this process is lost.
public protocol UNUserNotificationCenterDelegate: AnyObject {
    /// The launch ends when this returns.
    func userNotificationCenter(_ center: UNUserNotificationCenter, didReceive response: UNNotificationResponse) async
}

extension UNUserNotificationCenterDelegate {
    public func userNotificationCenter(
        _ center: UNUserNotificationCenter, didReceive response: UNNotificationResponse
    ) async {}
}

/// Desktop notifications, sent and kept by the app's agent: they stay, with their buttons, when this process ends.
public final class UNUserNotificationCenter: Sendable {
    private static var shared: UNUserNotificationCenter { AppRuntime.shared.part { UNUserNotificationCenter() } }

    private struct WeakDelegate: @unchecked Sendable {  // because the mutex around it guards the reference
        weak var delegate: (any UNUserNotificationCenterDelegate)?
    }

    private let held = Mutex(WeakDelegate())

    private init() {
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
        }
    }

    /// Differs from Apple: a desktop asks nobody. `true` unless the person switched the app's notifications off.
    /// - Throws: nothing: the signature is Apple's.
    public func requestAuthorization(options: UNAuthorizationOptions = []) async throws -> Bool {
        await notificationSettings().authorizationStatus == .authorized
    }

    /// What the person allows, as configured.
    public func notificationSettings() async -> UNNotificationSettings {
        let settings = try? AppRuntime.shared.ledger().read { try $0.fact(.settings) }
        return UNNotificationSettings(
            authorizationStatus: settings?.notificationsEnabled ?? true ? .authorized : .denied)
    }

    // MARK: Adding

    /// Makes a notification durable; the agent shows it when its time has come and a server is there.
    ///
    /// The same identifier again replaces the earlier one, on the screen too, and alerts again, unless it is a request that
    /// ``UNNotificationRequest/alertsOncePerContent``. One that was not shown yet is shown once.
    /// - Throws: ``UNError``.
    public func add(_ request: UNNotificationRequest) async throws { try addNow(request) }

    /// The same with a handler, called with the error or `nil` before this returns.
    public func add(_ request: UNNotificationRequest, withCompletionHandler completion: (@Sendable ((any Error)?) -> Void)? = nil)
    {
        do {
            try addNow(request)
            completion?(nil)
        } catch {
            completion?(error)
        }
    }

    private func addNow(_ request: UNNotificationRequest) throws {
        if let trigger = request.trigger as? UNTimeIntervalNotificationTrigger, trigger.repeats {
            throw UNError(.notificationInvalidNoDate, "repeating triggers are not supported yet")
        }
        let now = AppRuntime.shared.now
        let files = try request.content.attachments.map { try $0.taken() }
        // What is not kept goes with `files`.
        let content = try request.content.record(files.map(\.attachment))
        do {
            try AppRuntime.shared.commit(beforeStart: { isKept in if isKept { for file in files { file.copy.keep() } } }) {
                try $0.addNotification(
                    request.identifier, content, dueAt: request.trigger?.dueDate(now: now),
                    oncePerContent: request.alertsOncePerContent, now: now)
            }
        } catch {
            throw UNError(.notificationsNotAllowed, "\(error)")
        }
    }

    // MARK: Lists

    /// Those that wait for their time, or for a server.
    public func pendingNotificationRequests() async -> [UNNotificationRequest] {
        list(\.life.isUntold).map(Self.request(from:))
    }

    /// Those that stand on the screen.
    public func deliveredNotifications() async -> [UNNotification] {
        list(\.life.isStanding).map {
            UNNotification(date: $0.deliveredAt ?? $0.createdAt, request: Self.request(from: $0))
        }
    }

    /// Takes back those that were not shown yet. What cannot be written now is written later.
    public func removePendingNotificationRequests(withIdentifiers identifiers: [String]) {
        remove(identifiers, \.life.isWaiting)
    }

    /// Takes back all that were not shown yet.
    public func removeAllPendingNotificationRequests() { remove(nil, \.life.isWaiting) }

    /// Takes these off the screen. Those that a person has closed are forgotten, so that a request that
    /// ``UNNotificationRequest/alertsOncePerContent`` alerts again.
    public func removeDeliveredNotifications(withIdentifiers identifiers: [String]) {
        remove(identifiers, \.isShown)
    }

    /// Takes all off the screen, as ``removeDeliveredNotifications(withIdentifiers:)`` does.
    public func removeAllDeliveredNotifications() { remove(nil, \.isShown) }

    private func list(_ isWanted: (NotificationRecord) -> Bool) -> [NotificationRecord] {
        ((try? AppRuntime.shared.ledger().read { try $0.notifications() }) ?? []).filter(isWanted)
    }

    /// - Parameter identifiers: of these alone; `nil`: of all.
    private func remove(_ identifiers: [String]?, _ isWanted: @escaping @Sendable (NotificationRecord) -> Bool) {
        let wanted: @Sendable (LedgerTransaction) throws -> [NotificationRecord] = { transaction in
            guard let identifiers else { return try transaction.notifications().filter(isWanted) }
            return try Set(identifiers).compactMap { try transaction.notification($0) }.filter(isWanted)
        }
        // What is not there needs no write, which would ring the bell and start an agent.
        if DurableWrites.shared.settle() == nil, let found = try? AppRuntime.shared.ledger().read(wanted), found.isEmpty {
            return
        }
        let now = AppRuntime.shared.now
        DurableWrites.shared.commit("the removal of notifications") { transaction in
            try transaction.takeBack(wanted(transaction), now: now)
        }
    }

    // MARK: Categories

    /// The buttons of this app's notifications, by category. Durable: the agent needs them when this process is gone.
    public func setNotificationCategories(_ categories: Set<UNNotificationCategory>) {
        // Set at every start of an app: writing only what changed rings no bell and starts no agent.
        let wanted = categories.map { category in
            (category.identifier, category.actions.map { NoticeAction(key: $0.identifier, label: $0.title) })
        }
        DurableWrites.shared.commit("the buttons of notifications", startsAgent: false) { transaction in
            for (identifier, actions) in wanted { try transaction.setCategory(identifier, actions: actions) }
            try transaction.deleteCategories(except: Set(wanted.map(\.0)))
        }
    }

    // MARK: Responses

    /// `nil`: nobody listens here. A scene of the app may.
    private func deliverResponses(notification identifier: String) async -> Bool? {
        guard let delegate else { return nil }
        for record in LaunchContext.undeliveredResponses(to: identifier) {
            let request = UNNotificationRequest(
                identifier: record.notification, content: .make(from: record.content), trigger: nil)
            nonisolated(unsafe) let receiver = delegate
            await receiver.userNotificationCenter(
                self,
                didReceive: UNNotificationResponse(
                    notification: UNNotification(date: record.createdAt, request: request), actionIdentifier: record.action))
            LaunchContext.current?.acknowledgeAtEnd { try $0.responseWasDelivered(record.id!, now: AppRuntime.shared.now) }
        }
        return true
    }

    private static func request(from record: NotificationRecord) -> UNNotificationRequest {
        UNNotificationRequest(identifier: record.identifier, content: .make(from: record.content), trigger: nil)
    }
}

extension NotificationRecord {
    /// It is, or was, on the screen.
    fileprivate var isShown: Bool { state == .presenting || life.isTold }
}
