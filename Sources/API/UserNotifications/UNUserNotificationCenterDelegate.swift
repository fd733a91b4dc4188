import BackgroundRuntime
import Foundation
import Synchronization

/// An object that receives the user's responses to notifications. Set the delegate before the app's scenes are built, because
/// otherwise the response for which this process was launched is lost.
///
/// Implement `willPresent` and `didReceive` in one of two forms, as on iOS: `async`, or with a completion handler. If a delegate
/// implements both forms, the form with the handler is called. Both forms are called on the main thread.
///
/// Differs from Apple: if the name or a type of a method is wrong, the method is not called, and the compiler does not report it.
/// If a base class conforms, a method of a subclass is called only if the base class declares it. Declare the method in the base
/// class, and `override` the method in the subclass.
public protocol UNUserNotificationCenterDelegate: AnyObject {
    /// Returns how to show a notification that the app adds, or whose trigger is due, while a user runs the app. If the options
    /// contain neither banner nor list, the notification is not shown. If the delegate does not respond within 5 s, the complete
    /// notification is shown.
    ///
    /// Differs from Apple: a desktop does not report which app is in front. An app counts as in front if a user started the app and
    /// the app has a delegate. This method is not called for notifications that a launched process adds, or whose trigger is due
    /// within two seconds after the app's start. If the delegate does not implement this method, the complete notification is
    /// shown.
    func userNotificationCenter(
        _ center: UNUserNotificationCenter, willPresent notification: UNNotification,
        withCompletionHandler completionHandler: @escaping @Sendable (UNNotificationPresentationOptions) -> Void)

    /// Returns how to show a notification (`async` form).
    func userNotificationCenter(
        _ center: UNUserNotificationCenter, willPresent notification: UNNotification
    ) async -> UNNotificationPresentationOptions

    /// Handles a response: the user pressed a button, clicked the notification, or dismissed the notification. The launch ends when
    /// the delegate has called the handler.
    func userNotificationCenter(
        _ center: UNUserNotificationCenter, didReceive response: UNNotificationResponse,
        withCompletionHandler completionHandler: @escaping @Sendable () -> Void)

    /// Handles a response (`async` form). The launch ends when this method returns. If the time of the launch ends, the task of this
    /// method is cancelled.
    func userNotificationCenter(_ center: UNUserNotificationCenter, didReceive response: UNNotificationResponse) async

    /// Opens the app's settings. Differs from Apple: never called, because desktops do not offer a link to an app's settings.
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
        let work = Task {
            await receiver.userNotificationCenter(center, didReceive: response)
            completionHandler()
        }
        LaunchContext.current?.onWarning { _ in work.cancel() }
    }

    public func userNotificationCenter(
        _ center: UNUserNotificationCenter, didReceive response: UNNotificationResponse
    ) async {}

    public func userNotificationCenter(_ center: UNUserNotificationCenter, openSettingsFor notification: UNNotification?) {}
}

/// A handler that runs only once, because some delegates call their handler twice.
final class Once: Sendable {
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
