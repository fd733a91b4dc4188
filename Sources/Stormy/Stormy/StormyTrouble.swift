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

    /// Takes it back: what was told does not hold any more, and is told again should it come back.
    package static func isOver(_ kind: String) {
        let center = UNUserNotificationCenter.current()
        center.removePendingNotificationRequests(withIdentifiers: ["trouble-\(kind)"])
        center.removeDeliveredNotifications(withIdentifiers: ["trouble-\(kind)"])
    }
}
