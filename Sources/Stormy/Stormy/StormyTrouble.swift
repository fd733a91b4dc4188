import Foundation
import UserNotifications

/// Shows notifications about problems that prevent Stormy from working, one notification for each kind of problem.
package enum StormyTrouble {
    /// Shows a notification, unless a notification with this text was already shown.
    ///
    /// - Parameters:
    ///   - kind: A part of the notification's identifier.
    ///   - body: the cause. If the text changes, the notification is shown again.
    package static func show(_ kind: String, _ title: String, _ body: String) {
        let content = UNMutableNotificationContent()
        (content.title, content.body) = (title, body)
        UNUserNotificationCenter.current().add(
            UNNotificationRequest(identifier: "trouble-\(kind)", content: content, trigger: nil, alertsOncePerContent: true)
        ) { error in
            if let error { logError("not shown: \(title): \(error)") }
        }
    }

    /// Removes the notification after the problem has ended. If the problem occurs again, the notification is shown again.
    package static func isOver(_ kind: String) {
        let center = UNUserNotificationCenter.current()
        center.removePendingNotificationRequests(withIdentifiers: ["trouble-\(kind)"])
        center.removeDeliveredNotifications(withIdentifiers: ["trouble-\(kind)"])
    }
}
