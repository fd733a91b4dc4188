import BackgroundLedger
import BackgroundRuntime
import BackgroundScheduling
import Foundation

/// A kind of background work that a scene can handle.
///
/// Differs from Apple: `processing(_:)` and `continuedProcessing(_:)` exist too, where there `BGTaskScheduler.register` is
/// the only way; and so do `notificationResponse` and `significantTimeChange`.
public struct BackgroundTask<Request: Sendable, Response: Sendable>: Sendable {
    let kind: LaunchKind
    let matches: @Sendable (String) -> Bool
    /// What the action is called with, once for each.
    let requests: @Sendable (TaskHandlers.Payload) -> [Request]
}

extension BackgroundTask where Request == Void, Response == Void {
    /// An app refresh with exactly this identifier, from the permitted list.
    public static func appRefresh(_ identifier: String) -> Self {
        Self(kind: .appRefresh, matches: { $0 == identifier }, requests: { _ in [()] })
    }

    /// A processing task with exactly this identifier. Beyond Apple.
    public static func processing(_ identifier: String) -> Self {
        Self(kind: .processing, matches: { $0 == identifier }, requests: { _ in [()] })
    }

    /// Finished transfers of the background session with exactly this identifier.
    public static func urlSession(_ identifier: String) -> Self {
        Self(kind: .urlSession, matches: { $0 == identifier }, requests: { _ in [()] })
    }
}

extension BackgroundTask where Request == String, Response == Void {
    /// Finished transfers of any background session; the action receives its identifier.
    public static var urlSession: Self {
        Self(kind: .urlSession, matches: { _ in true }, requests: { [$0.identifier] })
    }

    /// Finished transfers of the background sessions that `matching` accepts.
    public static func urlSession(matching: @escaping @Sendable (String) -> Bool) -> Self {
        Self(kind: .urlSession, matches: matching, requests: { [$0.identifier] })
    }
}

extension BackgroundTask where Request == Void, Response == Void {
    /// A new day began, the clocks changed, or the time zone did. The app hears of it from the first time on that it ran
    /// with a scene that asks for it; its agent then stays. Beyond Apple, where a notification tells running apps only.
    public static var significantTimeChange: Self {
        Self(kind: .significantTimeChange, matches: { _ in true }, requests: { _ in [()] })
    }
}

extension BackgroundTask where Request == BGContinuedProcessingTask, Response == Void {
    /// Continued processing with exactly this identifier: its progress and title are changed through the task that the
    /// action receives, which is complete when the action returns. Beyond Apple.
    public static func continuedProcessing(_ identifier: String) -> Self {
        Self(
            kind: .continuedProcessing, matches: { $0 == identifier },
            requests: { payload in payload.continued.map { [$0] } ?? [] })
    }
}

extension BackgroundTask where Request == BackgroundNotificationResponse, Response == Void {
    /// A person pressed a notification or one of its buttons. Beyond Apple, where only the centre's delegate hears of it;
    /// it still does, first.
    public static var notificationResponse: Self {
        Self(
            kind: .notificationResponse, matches: { _ in true },
            requests: { BackgroundNotificationResponse.undelivered(of: $0.identifier) })
    }
}

/// What a person pressed.
public struct BackgroundNotificationResponse: Sendable, Hashable {
    /// The notification's.
    public let identifier: String
    /// The button's, or `UNNotificationDefaultActionIdentifier` for the notification itself.
    public let actionIdentifier: String

    static func undelivered(of notification: String) -> [Self] {
        LaunchContext.undeliveredResponses(to: notification).map { response in
            LaunchContext.current?.acknowledgeAtEnd { try $0.responseWasDelivered(response.id!, now: AppRuntime.shared.now) }
            return Self(identifier: response.notification, actionIdentifier: response.action)
        }
    }
}
