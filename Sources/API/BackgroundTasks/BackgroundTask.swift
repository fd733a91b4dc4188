import BackgroundLedger
import BackgroundRuntime
import BackgroundScheduling
import Foundation

/// A kind of background work that a scene can handle.
///
/// Differs from Apple: `processing(_:)`, `continuedProcessing(_:)`, `notificationResponse` and `significantTimeChange` do not
/// exist on iOS. For processing and continued processing, iOS has `BGTaskScheduler.register`.
public struct BackgroundTask<Request: Sendable, Response: Sendable>: Sendable {
    let kind: LaunchKind
    let matches: @Sendable (String) -> Bool
    /// A closure that returns the values that a launch contains. The action is called once for each value.
    let requests: @Sendable (TaskHandlers.Payload) -> [Request]
    /// A closure that receives a value and returns a second closure. The second closure records in the ledger that the action
    /// received the value. The second closure is `nil` if the result of the launch already shows that the action received the
    /// value.
    var acknowledgement: @Sendable (Request) -> (@Sendable (LedgerTransaction) throws -> Void)? = { _ in nil }

    /// Calls the action of the scene with each value of the launch.
    func run(_ payload: TaskHandlers.Payload, _ action: @Sendable (Request) async -> Response) async {
        for request in requests(payload) {
            let acknowledge = acknowledgement(request)
            _ = await HandledDelivery.$current.withValue(acknowledge.map(HandledDelivery.init)) { await action(request) }
            if let acknowledge { LaunchContext.current?.acknowledgeAtEnd(acknowledge) }
        }
    }
}

extension BackgroundTask where Request == Void, Response == Void {
    /// An app refresh with exactly this identifier. The permitted list must contain the identifier.
    public static func appRefresh(_ identifier: String) -> Self {
        Self(kind: .appRefresh, matches: { $0 == identifier }, requests: { _ in [()] })
    }

    /// A processing task with exactly this identifier. Apple's API has no equivalent.
    public static func processing(_ identifier: String) -> Self {
        Self(kind: .processing, matches: { $0 == identifier }, requests: { _ in [()] })
    }

    /// A launch for finished transfers of the background session with exactly this identifier.
    public static func urlSession(_ identifier: String) -> Self {
        Self(kind: .urlSession, matches: { $0 == identifier }, requests: { _ in [()] })
    }
}

extension BackgroundTask where Request == String, Response == Void {
    /// A launch for finished transfers of any background session. The action receives the identifier of the session.
    public static var urlSession: Self {
        Self(kind: .urlSession, matches: { _ in true }, requests: { [$0.identifier] })
    }

    /// A launch for finished transfers of the background sessions whose identifiers `matching` accepts.
    public static func urlSession(matching: @escaping @Sendable (String) -> Bool) -> Self {
        Self(kind: .urlSession, matches: matching, requests: { [$0.identifier] })
    }
}

extension BackgroundTask where Request == Void, Response == Void {
    /// Work that the app does after a new day has begun, or after the clock or the time zone was changed. The agent launches the
    /// app for such changes if an earlier process of the app had a scene for this task. The agent then keeps running. Apple's API
    /// has no equivalent: on iOS only running apps are notified of a change.
    public static var significantTimeChange: Self {
        Self(kind: .significantTimeChange, matches: { _ in true }, requests: { _ in [()] })
    }
}

extension BackgroundTask where Request == BGContinuedProcessingTask, Response == Void {
    /// Continued processing with exactly this identifier. The action receives the task and can change the progress and the title
    /// of the task. The task is complete when the action returns. Apple's API has no equivalent.
    public static func continuedProcessing(_ identifier: String) -> Self {
        Self(
            kind: .continuedProcessing, matches: { $0 == identifier },
            requests: { payload in payload.continued.map { [$0] } ?? [] })
    }
}

extension BackgroundTask where Request == BackgroundNotificationResponse, Response == Void {
    /// A response of the user to a notification: a press of the notification or of one of its buttons. Apple's API has no
    /// equivalent: on iOS only the delegate of the notification center receives responses. In this module, both the scene's
    /// action and the delegate are called.
    public static var notificationResponse: Self {
        Self(
            kind: .notificationResponse, matches: { _ in true },
            requests: { BackgroundNotificationResponse.undelivered(of: $0.identifier) },
            acknowledgement: { response in { try $0.responseWasDelivered(response.record, now: AppRuntime.shared.now) } })
    }
}

/// A response of the user to a notification.
public struct BackgroundNotificationResponse: Sendable, Hashable {
    /// The identifier of the notification.
    public let identifier: String
    /// The identifier of the button, or `UNNotificationDefaultActionIdentifier` for the notification itself.
    public let actionIdentifier: String
    /// The identifier of the response's record in the ledger.
    let record: Int64

    static func undelivered(of notification: String) -> [Self] {
        LaunchContext.undeliveredResponses(to: notification).map { response in
            Self(identifier: response.notification, actionIdentifier: response.action, record: response.id!)
        }
    }
}
