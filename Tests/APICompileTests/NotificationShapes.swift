import BackgroundTasks
import Foundation
import UserNotifications

// Notification code in the forms that real iOS code uses, ordered by frequency. The code must compile. NotificationAPITests tests
// which delegate methods are called.

final class NotificationManager: NSObject, UNUserNotificationCenterDelegate, @unchecked Sendable {
    static let shared = NotificationManager()
    private let center = UNUserNotificationCenter.current()

    override init() {
        super.init()
        center.delegate = self
    }

    func ask() {
        center.requestAuthorization(options: [.alert, .sound, .badge]) { granted, error in
            if let error { print(error.localizedDescription) }
            guard granted else { return }
        }
        UNUserNotificationCenter.current().requestAuthorization(options: [.alert, .badge, .sound, .criticalAlert, .provisional]) {
            _, _ in
        }
    }

    func look() {
        center.getNotificationSettings { settings in
            switch settings.authorizationStatus {
            case .notDetermined, .denied: print("no")
            case .authorized, .provisional, .ephemeral: print("yes")
            @unknown default: break
            }
            if settings.alertSetting == .enabled, settings.soundSetting != .disabled, settings.badgeSetting == .notSupported {}
            if settings.alertStyle == .banner || settings.showPreviewsSetting == .always {}
        }
        center.getPendingNotificationRequests { requests in
            for request in requests where request.identifier.hasPrefix("a") {
                if let trigger = request.trigger as? UNCalendarNotificationTrigger { print(trigger.nextTriggerDate() as Any) }
                if let trigger = request.trigger as? UNTimeIntervalNotificationTrigger { print(trigger.timeInterval) }
                if request.trigger is UNPushNotificationTrigger {}
            }
        }
        center.getDeliveredNotifications { notifications in
            let identifiers = notifications.map { $0.request.identifier }
            UNUserNotificationCenter.current().removeDeliveredNotifications(withIdentifiers: identifiers)
        }
        center.getNotificationCategories { categories in
            UNUserNotificationCenter.current().setNotificationCategories(categories)
        }
    }

    func schedule(hour: Int) {
        let content = UNMutableNotificationContent()
        content.title = NSLocalizedString("Title", comment: "")
        content.subtitle = "Subtitle"
        content.body = "Body"
        content.sound = UNNotificationSound.default
        content.sound = UNNotificationSound(named: UNNotificationSoundName(rawValue: "ring"))
        content.sound = .defaultCritical
        content.sound = UNNotificationSound.defaultCriticalSound(withAudioVolume: 0.5)
        content.badge = 1
        content.badge = NSNumber(value: 2)
        content.userInfo = ["id": 1, "name": "a"]
        content.categoryIdentifier = "category"
        content.threadIdentifier = "thread"
        content.summaryArgument = "a"
        content.interruptionLevel = .timeSensitive
        content.relevanceScore = 1
        content.targetContentIdentifier = "target"
        content.launchImageName = "launch"
        if let url = Bundle.main.url(forResource: "a", withExtension: "png"),
            let attachment = try? UNNotificationAttachment(identifier: "a", url: url, options: nil)
        {
            content.attachments = [attachment]
        }
        var components = DateComponents()
        components.hour = hour
        components.minute = 0
        let trigger = UNCalendarNotificationTrigger(dateMatching: components, repeats: true)
        let request = UNNotificationRequest(identifier: UUID().uuidString, content: content, trigger: trigger)
        center.add(request)
        center.add(request) { (error: Error?) in if error != nil {} }
        center.add(request, withCompletionHandler: nil)
        center.removePendingNotificationRequests(withIdentifiers: [request.identifier])
        let soon = UNTimeIntervalNotificationTrigger(timeInterval: max(1, 5), repeats: false)
        UNUserNotificationCenter.current().add(UNNotificationRequest(identifier: "soon", content: content, trigger: soon))
        let copy = content.mutableCopy() as! UNMutableNotificationContent
        copy.title = "Other"
        let fixed = content.copy() as! UNNotificationContent
        if fixed == content, Set([request]).contains(request) {}
        center.setBadgeCount(0)
        center.setBadgeCount(0) { error in if let error { print(error) } }
        center.removeAllPendingNotificationRequests()
        center.removeAllDeliveredNotifications()
    }

    func categories() {
        let reply = UNTextInputNotificationAction(
            identifier: "reply", title: "Reply", options: [], textInputButtonTitle: "Send", textInputPlaceholder: "Text")
        let open = UNNotificationAction(identifier: "open", title: "Open", options: [.foreground, .authenticationRequired])
        let delete = UNNotificationAction(
            identifier: "delete", title: "Delete", options: .destructive, icon: UNNotificationActionIcon(systemImageName: "trash")
        )
        let one = UNNotificationCategory(
            identifier: "one", actions: [reply, open, delete], intentIdentifiers: [], options: .customDismissAction)
        let two = UNNotificationCategory(
            identifier: "two", actions: [], intentIdentifiers: [], hiddenPreviewsBodyPlaceholder: "", options: [])
        let three = UNNotificationCategory(
            identifier: "three", actions: [open], intentIdentifiers: [], hiddenPreviewsBodyPlaceholder: "%u",
            categorySummaryFormat: "%u more", options: [.hiddenPreviewsShowTitle])
        UNUserNotificationCenter.current().setNotificationCategories([one, two, three])
    }

    func userNotificationCenter(
        _ center: UNUserNotificationCenter, willPresent notification: UNNotification,
        withCompletionHandler completionHandler: @escaping (UNNotificationPresentationOptions) -> Void
    ) {
        completionHandler([.banner, .list, .sound, .badge, .alert])
    }

    func userNotificationCenter(
        _ center: UNUserNotificationCenter, didReceive response: UNNotificationResponse,
        withCompletionHandler completionHandler: @escaping () -> Void
    ) {
        defer { completionHandler() }
        let userInfo = response.notification.request.content.userInfo
        switch response.actionIdentifier {
        case UNNotificationDefaultActionIdentifier, UNNotificationDismissActionIdentifier: print(userInfo)
        case "reply": if let reply = response as? UNTextInputNotificationResponse { print(reply.userText) }
        default: break
        }
    }

    func userNotificationCenter(_ center: UNUserNotificationCenter, openSettingsFor notification: UNNotification?) {}
}

/// Notification code in a class on the main actor. The class uses async functions, like many view models.
@MainActor final class NotificationModel: NSObject, UNUserNotificationCenterDelegate {
    var isAuthorized = false

    func load() async throws {
        let center = UNUserNotificationCenter.current()
        isAuthorized = try await center.requestAuthorization(options: [.alert, .timeSensitive])
        let settings = await center.notificationSettings()
        isAuthorized = settings.authorizationStatus == .authorized
        let pending = await center.pendingNotificationRequests()
        let delivered = await center.deliveredNotifications()
        let categories = await center.notificationCategories()
        print(pending.count, delivered.first?.date as Any, categories.map(\.identifier))
        try await center.setBadgeCount(3)
        do {
            try await center.add(UNNotificationRequest(identifier: "a", content: UNNotificationContent(), trigger: nil))
        } catch UNError.notificationsNotAllowed {
        } catch let error as UNError where error.code == .notificationInvalidNoDate {
        } catch {
            if (error as NSError).domain == UNErrorDomain {}
        }
    }

    func userNotificationCenter(
        _ center: UNUserNotificationCenter, willPresent notification: UNNotification
    ) async -> UNNotificationPresentationOptions { [.banner] }

    func userNotificationCenter(_ center: UNUserNotificationCenter, didReceive response: UNNotificationResponse) async {
        isAuthorized = true
    }
}

/// A notification delegate whose completion handlers are `@Sendable`, as in newer code.
final class NotificationDelegate: NSObject, UNUserNotificationCenterDelegate {
    func userNotificationCenter(
        _ center: UNUserNotificationCenter, willPresent notification: UNNotification,
        withCompletionHandler completionHandler: @escaping @Sendable (UNNotificationPresentationOptions) -> Void
    ) { completionHandler(.banner) }

    func userNotificationCenter(
        _ center: UNUserNotificationCenter, didReceive response: UNNotificationResponse,
        withCompletionHandler completionHandler: @escaping @Sendable () -> Void
    ) { completionHandler() }
}

final class ArchiveAction: UNNotificationAction, @unchecked Sendable {
    init() { super.init(identifier: "archive", title: "Archive", options: [], icon: nil) }
}
