import Foundation

/// Hears what a person did with a notification. Set it before the app's scenes are built, or the response that launched this process is lost.
///
/// Each of the two is written in one of two forms, as on iOS: `async`, or with a completion handler. Where a delegate has both, the one with the
/// handler is called.
public protocol UNUserNotificationCenterDelegate: AnyObject {
    /// What is shown of a notification while the app is in front. Differs from Apple: not asked yet. A desktop cannot tell whether an app is in front,
    /// and everything is shown.
    func userNotificationCenter(
        _ center: UNUserNotificationCenter, willPresent notification: UNNotification,
        withCompletionHandler completionHandler: @escaping @Sendable (UNNotificationPresentationOptions) -> Void)

    /// The same, without a handler. Differs from Apple: not asked yet.
    func userNotificationCenter(
        _ center: UNUserNotificationCenter, willPresent notification: UNNotification
    ) async -> UNNotificationPresentationOptions

    /// The person pressed a button, clicked the notification, or dismissed it. The launch ends when the handler was called.
    func userNotificationCenter(
        _ center: UNUserNotificationCenter, didReceive response: UNNotificationResponse,
        withCompletionHandler completionHandler: @escaping @Sendable () -> Void)

    /// The same, without a handler. The launch ends when this returns.
    func userNotificationCenter(_ center: UNUserNotificationCenter, didReceive response: UNNotificationResponse) async

    /// The person wants the app's own settings. Differs from Apple: no desktop has a way to ask for them, and nobody calls this.
    func userNotificationCenter(_ center: UNUserNotificationCenter, openSettingsFor notification: UNNotification?)
}

extension UNUserNotificationCenterDelegate {
    public func userNotificationCenter(
        _ center: UNUserNotificationCenter, willPresent notification: UNNotification,
        withCompletionHandler completionHandler: @escaping @Sendable (UNNotificationPresentationOptions) -> Void
    ) {
        nonisolated(unsafe) let receiver: any UNUserNotificationCenterDelegate = self
        Task { completionHandler(await receiver.userNotificationCenter(center, willPresent: notification)) }
    }

    public func userNotificationCenter(
        _ center: UNUserNotificationCenter, willPresent notification: UNNotification
    ) async -> UNNotificationPresentationOptions { [.badge, .sound, .list, .banner] }

    public func userNotificationCenter(
        _ center: UNUserNotificationCenter, didReceive response: UNNotificationResponse,
        withCompletionHandler completionHandler: @escaping @Sendable () -> Void
    ) {
        nonisolated(unsafe) let receiver: any UNUserNotificationCenterDelegate = self
        Task {
            await receiver.userNotificationCenter(center, didReceive: response)
            completionHandler()
        }
    }

    public func userNotificationCenter(
        _ center: UNUserNotificationCenter, didReceive response: UNNotificationResponse
    ) async {}

    public func userNotificationCenter(_ center: UNUserNotificationCenter, openSettingsFor notification: UNNotification?) {}
}
