import BackgroundLedger
import BackgroundNotices
import BackgroundRuntime
import Foundation
import Synchronization

/// The delegate's decision about the parts of a notification that are shown (banner, list, sound and badge). The delegate decides
/// only about notifications that are due while a user runs the app.
///
/// The notification is stored before the delegate is called. If the delegate does not respond, the notification is shown
/// unchanged. The notification is therefore not lost if the process ends before the delegate responds.
struct PresentationDecision: Sendable {
    let center: UNUserNotificationCenter
    let request: UNNotificationRequest

    /// Returns `nil` if the delegate does not have to decide now. If the notification has a trigger, ``ForegroundWatch`` calls
    /// the delegate later.
    init?(adding request: UNNotificationRequest, _ center: UNUserNotificationCenter) {
        guard request.trigger == nil, LaunchContext.current == nil, center.delegate != nil else { return nil }
        self.init(request, center)
    }

    init(_ request: UNNotificationRequest, _ center: UNUserNotificationCenter) { (self.request, self.center) = (request, center) }

    func answer() async -> NoticePresentation {
        guard let delegate = center.delegate else { return Self.all }
        nonisolated(unsafe) let receiver = delegate
        let notification = UNNotification(date: AppRuntime.shared.now, request: request)
        return await withCheckedContinuation { continuation in
            let once = FirstDecision(continuation)
            DispatchQueue.global().asyncAfter(deadline: .now() + NoticePresentation.patience) { once.resume(Self.all) }
            DispatchQueue.main.async {
                receiver.userNotificationCenter(center, willPresent: notification) { once.resume(NoticePresentation($0)) }
            }
        }
    }

    private static let all: NoticePresentation = [.badge, .sound, .list, .banner]
}

extension NoticePresentation {
    init(_ options: UNNotificationPresentationOptions) {
        self = []
        if !options.isDisjoint(with: [.banner, .alert]) { insert(.banner) }
        if options.contains(.list) { insert(.list) }
        if options.contains(.sound) { insert(.sound) }
        if options.contains(.badge) { insert(.badge) }
    }
}

/// Passes on only the first decision, because some delegates call the handler twice, or after the time limit.
private final class FirstDecision: Sendable {
    private let waiting: Mutex<CheckedContinuation<NoticePresentation, Never>?>

    init(_ waiting: CheckedContinuation<NoticePresentation, Never>) { self.waiting = Mutex(waiting) }

    func resume(_ options: NoticePresentation) {
        let first = waiting.withLock { waiting in
            defer { waiting = nil }
            return waiting
        }
        first?.resume(returning: options)
    }
}
