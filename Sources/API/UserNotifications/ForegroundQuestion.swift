import BackgroundLedger
import BackgroundNotices
import BackgroundRuntime
import Foundation
import Synchronization

/// What a delegate wants shown of a notification that the app adds while a person runs it.
///
/// The notification is durable before the delegate is asked, and comes by itself if no answer does: a process that ends in between loses nothing.
struct ForegroundQuestion: Sendable {
    /// Seconds that a delegate has for its answer; then all of it is shown.
    static let patience = 5.0

    let center: UNUserNotificationCenter
    let request: UNNotificationRequest

    /// `nil`: nobody is to be asked. What comes by a trigger is shown: its app may not run by then.
    init?(_ request: UNNotificationRequest, _ center: UNUserNotificationCenter) {
        guard request.trigger == nil, LaunchContext.current == nil, center.delegate != nil else { return nil }
        (self.request, self.center) = (request, center)
    }

    /// Until the answer, or until nobody can be expected to answer any more.
    static let wait = NoticeTrigger.interval(patience, repeats: false)

    func answer() async -> UNNotificationPresentationOptions {
        guard let delegate = center.delegate else { return Self.all }
        nonisolated(unsafe) let receiver = delegate
        let notification = UNNotification(date: AppRuntime.shared.now, request: request)
        return await withCheckedContinuation { continuation in
            let once = FirstAnswer(continuation)
            DispatchQueue.global().asyncAfter(deadline: .now() + Self.patience) { once.give(Self.all) }
            DispatchQueue.main.async {
                receiver.userNotificationCenter(center, willPresent: notification) { once.give($0) }
            }
        }
    }

    private static let all: UNNotificationPresentationOptions = [.badge, .sound, .list, .banner]
}

extension NotificationContent {
    /// `nil`: nothing of it is shown.
    func limited(to options: UNNotificationPresentationOptions) -> NotificationContent? {
        let isOnScreen = !options.isDisjoint(with: [.banner, .alert])
        guard isOnScreen || options.contains(.list) else { return nil }
        var content = self
        if !options.contains(.sound) { content.sound = nil }
        if !options.contains(.badge) { content.badge = nil }
        // A list without a banner: as quietly as a desktop can.
        if !isOnScreen { content.interruptionLevel = 0 }
        return content
    }
}

/// Some call a handler twice, or after the time was up.
private final class FirstAnswer: Sendable {
    private let waiting: Mutex<CheckedContinuation<UNNotificationPresentationOptions, Never>?>

    init(_ waiting: CheckedContinuation<UNNotificationPresentationOptions, Never>) { self.waiting = Mutex(waiting) }

    func give(_ options: UNNotificationPresentationOptions) {
        let first = waiting.withLock { waiting in
            defer { waiting = nil }
            return waiting
        }
        first?.resume(returning: options)
    }
}
