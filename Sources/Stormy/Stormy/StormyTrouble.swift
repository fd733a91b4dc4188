import Foundation
import UserNotifications

/// What keeps Stormy from its work, told to the person: once for each cause.
package enum StormyTrouble {
    /// - Parameters:
    ///   - kind: names the notification.
    ///   - body: the cause; another one is told again.
    package static func tell(_ kind: String, _ title: String, _ body: String) {
        let content = UNMutableNotificationContent()
        (content.title, content.body) = (title, body)
        UNUserNotificationCenter.current().add(
            UNNotificationRequest(identifier: "trouble-\(kind)", content: content, trigger: nil, alertsOncePerContent: true)
        ) { error in
            if let error { logError("not told: \(title): \(error)") }
        }
    }
}
