// Calendar reminders. The user can complete or snooze a reminder with buttons. The code was written for iOS, and only its imports
// were changed.
import UserNotifications

struct Reminder: Codable, Identifiable, Hashable, Sendable {
    enum Repetition: String, Codable, Sendable { case never, daily, weekly }

    let id: UUID
    var title: String
    var notes: String?
    var date: DateComponents
    var repetition: Repetition
    var isImportant = false
}

protocol ReminderHandling: AnyObject {
    func complete(reminderWithIdentifier identifier: String)
    func open(reminderWithIdentifier identifier: String)
}

final class ReminderScheduler: NSObject, @unchecked Sendable {
    static let categoryIdentifier = "REMINDER"
    static let snoozeInterval: TimeInterval = 10 * 60

    enum ActionIdentifier: String {
        case complete = "COMPLETE_ACTION"
        case snooze = "SNOOZE_ACTION"
        case delete = "DELETE_ACTION"
    }

    weak var handler: ReminderHandling?
    private let notificationCenter: UNUserNotificationCenter

    init(notificationCenter: UNUserNotificationCenter = .current()) {
        self.notificationCenter = notificationCenter
        super.init()
    }

    func setUp() {
        let complete = UNNotificationAction(
            identifier: ActionIdentifier.complete.rawValue, title: "Complete", options: UNNotificationActionOptions(rawValue: 0),
            icon: UNNotificationActionIcon(systemImageName: "checkmark"))
        let snooze = UNNotificationAction(identifier: ActionIdentifier.snooze.rawValue, title: "Remind me later", options: [])
        let delete = UNNotificationAction(
            identifier: ActionIdentifier.delete.rawValue, title: "Delete", options: [.destructive, .authenticationRequired])
        let category = UNNotificationCategory(
            identifier: ReminderScheduler.categoryIdentifier, actions: [complete, snooze, delete], intentIdentifiers: [],
            hiddenPreviewsBodyPlaceholder: "Reminder", categorySummaryFormat: "%u more reminders",
            options: .customDismissAction)

        notificationCenter.getNotificationCategories { [notificationCenter] categories in
            notificationCenter.setNotificationCategories(categories.union([category]))
        }
        notificationCenter.delegate = self
    }

    func requestAuthorization(completion: @escaping @Sendable (Bool) -> Void) {
        notificationCenter.requestAuthorization(options: [.alert, .sound, .badge, .providesAppNotificationSettings]) {
            granted, error in
            if let error { print("Authorization failed: \(error.localizedDescription)") }
            DispatchQueue.main.async { completion(granted) }
        }
    }

    func schedule(_ reminder: Reminder, completion: (@Sendable (Error?) -> Void)? = nil) {
        notificationCenter.getNotificationSettings { settings in
            switch settings.authorizationStatus {
            case .authorized, .provisional, .ephemeral: break
            case .denied, .notDetermined:
                completion?(UNError(.notificationsNotAllowed))
                return
            @unknown default: return
            }
            guard settings.alertSetting == .enabled else { return }

            let content = UNMutableNotificationContent()
            content.title = reminder.title
            content.subtitle = NSString.localizedUserNotificationString(forKey: "Reminder", arguments: nil)
            content.body = reminder.notes ?? ""
            content.sound = reminder.isImportant ? .defaultCritical : UNNotificationSound.default
            content.categoryIdentifier = ReminderScheduler.categoryIdentifier
            content.userInfo = ["REMINDER_ID": reminder.id.uuidString, "CREATED": Date()]
            if #available(iOS 15.0, *) {
                content.interruptionLevel = reminder.isImportant ? .timeSensitive : .active
                content.relevanceScore = reminder.isImportant ? 1 : 0.5
            }

            let trigger = UNCalendarNotificationTrigger(
                dateMatching: self.components(of: reminder), repeats: reminder.repetition != .never)
            let request = UNNotificationRequest(identifier: reminder.id.uuidString, content: content, trigger: trigger)
            self.notificationCenter.add(request) { error in completion?(error) }
        }
    }

    /// A daily reminder matches only the time. A weekly reminder also matches the weekday.
    private func components(of reminder: Reminder) -> DateComponents {
        switch reminder.repetition {
        case .never: return reminder.date
        case .daily: return DateComponents(hour: reminder.date.hour, minute: reminder.date.minute)
        case .weekly:
            let weekday = Calendar.current.date(from: reminder.date).map { Calendar.current.component(.weekday, from: $0) }
            return DateComponents(hour: reminder.date.hour, minute: reminder.date.minute, weekday: weekday)
        }
    }

    func cancel(_ reminder: Reminder) {
        notificationCenter.removePendingNotificationRequests(withIdentifiers: [reminder.id.uuidString])
        notificationCenter.removeDeliveredNotifications(withIdentifiers: [reminder.id.uuidString])
    }

    /// Returns the next date of each pending reminder.
    func upcoming() async -> [(identifier: String, date: Date)] {
        await notificationCenter.pendingNotificationRequests().compactMap { request in
            switch request.trigger {
            case let trigger as UNCalendarNotificationTrigger: trigger.nextTriggerDate().map { (request.identifier, $0) }
            case let trigger as UNTimeIntervalNotificationTrigger: trigger.nextTriggerDate().map { (request.identifier, $0) }
            default: nil
            }
        }
        .sorted { $0.1 < $1.1 }
    }

    private func snooze(_ request: UNNotificationRequest) {
        let content = request.content.mutableCopy() as! UNMutableNotificationContent
        content.subtitle = "Snoozed"
        let trigger = UNTimeIntervalNotificationTrigger(timeInterval: Self.snoozeInterval, repeats: false)
        let again = UNNotificationRequest(identifier: request.identifier + ".snoozed", content: content, trigger: trigger)
        notificationCenter.add(again, withCompletionHandler: nil)
    }
}

extension ReminderScheduler: UNUserNotificationCenterDelegate {
    func userNotificationCenter(
        _ center: UNUserNotificationCenter, willPresent notification: UNNotification,
        withCompletionHandler completionHandler: @escaping (UNNotificationPresentationOptions) -> Void
    ) {
        if #available(iOS 14.0, *) {
            completionHandler([.banner, .list, .sound])
        } else {
            completionHandler([.alert, .sound])
        }
    }

    func userNotificationCenter(
        _ center: UNUserNotificationCenter, didReceive response: UNNotificationResponse,
        withCompletionHandler completionHandler: @escaping () -> Void
    ) {
        let userInfo = response.notification.request.content.userInfo
        guard let identifier = userInfo["REMINDER_ID"] as? String else {
            completionHandler()
            return
        }
        switch response.actionIdentifier {
        case UNNotificationDefaultActionIdentifier: handler?.open(reminderWithIdentifier: identifier)
        case UNNotificationDismissActionIdentifier: break
        case ActionIdentifier.complete.rawValue: handler?.complete(reminderWithIdentifier: identifier)
        case ActionIdentifier.snooze.rawValue: snooze(response.notification.request)
        case ActionIdentifier.delete.rawValue: center.removePendingNotificationRequests(withIdentifiers: [identifier])
        default: break
        }
        completionHandler()
    }

    func userNotificationCenter(_ center: UNUserNotificationCenter, openSettingsFor notification: UNNotification?) {
        handler?.open(reminderWithIdentifier: "settings")
    }
}
