import Foundation

/// Hears what a person did with a notification. Set it before the app's scenes are built, or the response that launched this process is lost.
///
/// Each of the two is written in one of two forms, as on iOS: `async`, or with a completion handler. Where a delegate has both, the one with the
/// handler is called. Both are called on the main thread.
///
/// Differs from Apple: methods are found by their types and not by their names: one that is misspelt, or whose optionals differ, is another one. Of a subclass
/// only those are called that its base class, which conforms, has itself: declare the method there, and `override` it.
public protocol UNUserNotificationCenterDelegate: AnyObject {
    /// What is shown of a notification that the app adds, or that comes by a trigger, while a person runs the app; nothing of it where the options name neither
    /// banner nor list. Whoever has not answered within 5 s wants all of it.
    ///
    /// Differs from Apple: a desktop does not say which app is in front: one counts so that a person has started and that has a delegate. What
    /// a launch of the agent adds is shown unasked, and so is what comes within two seconds of the app's start. Without an answer of its own a delegate wants all of it.
    func userNotificationCenter(
        _ center: UNUserNotificationCenter, willPresent notification: UNNotification,
        withCompletionHandler completionHandler: @escaping @Sendable (UNNotificationPresentationOptions) -> Void)

    /// The same, without a handler.
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
