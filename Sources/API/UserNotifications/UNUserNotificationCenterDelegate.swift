import BackgroundRuntime
import Foundation
import Synchronization

/// An object that receives the user's responses to notifications. Set the delegate before the app's scenes are built, because
/// otherwise the response for which this process was launched is lost.
///
/// Implement `willPresent` and `didReceive` in one of two forms, as on iOS: `async`, or with a completion handler. If a delegate
/// implements both forms, the form with the handler is called. Both forms are called on the main thread.
///
/// Differs from Apple: if a delegate declares a method with a wrong name or type, the method is not called, and the compiler
/// reports no error. If a base class conforms to this protocol, a method of a subclass is called only if the base class also
/// declares the method. Declare the method in the base class, and `override` the method in the subclass.
public protocol UNUserNotificationCenterDelegate: AnyObject {
    /// Returns the parts of a notification to show. The method is called while a user runs the app, if the app adds a
    /// notification or the trigger of a notification is due. If the options do not contain banner or list, the notification is
    /// not shown. If the delegate does not respond within 5 s, the complete notification is shown.
    ///
    /// Differs from Apple: a desktop does not report which app is in front. An app is treated as the app in front if a user
    /// started it and it has a delegate. The method is not called for a notification that a launched process adds. The method is
    /// also not called if the trigger is due within two seconds after the app's start. If the delegate does not implement this
    /// method, the complete notification is shown.
    func userNotificationCenter(
        _ center: UNUserNotificationCenter, willPresent notification: UNNotification,
        withCompletionHandler completionHandler: @escaping @Sendable (UNNotificationPresentationOptions) -> Void)

    /// Returns the parts of a notification to show (`async` form).
    func userNotificationCenter(
        _ center: UNUserNotificationCenter, willPresent notification: UNNotification
    ) async -> UNNotificationPresentationOptions

    /// Handles a response of the user, who pressed a button, clicked the notification or dismissed the notification. A launch for
    /// the response ends when the delegate has called the handler.
    func userNotificationCenter(
        _ center: UNUserNotificationCenter, didReceive response: UNNotificationResponse,
        withCompletionHandler completionHandler: @escaping @Sendable () -> Void)

    /// Handles a response of the user (`async` form). A launch for the response ends when this method returns. At the launch's
    /// time limit, the Swift task that runs this method is cancelled.
    func userNotificationCenter(_ center: UNUserNotificationCenter, didReceive response: UNNotificationResponse) async

    /// Opens the app's settings. Differs from Apple: the method is never called, because desktops do not offer a link to an app's
    /// settings.
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

/// A handler that runs only at the first call, because some delegates call their handler twice.
final class Once: Sendable {
    private struct Pending {
        var body: (@Sendable () -> Void)?
    }

    private let pending: Mutex<Pending>

    init(_ body: @escaping @Sendable () -> Void) { pending = Mutex(Pending(body: body)) }

    func run() {
        let body = pending.withLock { pending in
            defer { pending.body = nil }
            return pending.body
        }
        body?()
    }
}
