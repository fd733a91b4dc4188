import BackgroundRuntime
import BackgroundTasks
import Foundation
import Synchronization
import UserNotifications

/// Shows the notifications that a test requests. Logs the buttons that the user presses.
final class GroundNotices: NSObject, UNUserNotificationCenterDelegate, Sendable {
    private let log: ProvingLog
    private let isBurst = Mutex(false)
    private var center: UNUserNotificationCenter { .current() }

    init(log: ProvingLog) { self.log = log }

    /// Sets the delegate and the categories. `begin()` must be called before `scheduler.run()`. If the app is launched because
    /// the user responded to a notification, `run()` delivers the response immediately.
    func begin() {
        center.delegate = self
        let accept = UNNotificationAction(identifier: "accept", title: "Accept")
        let later = UNNotificationAction(identifier: "later", title: "Later")
        let reply = UNTextInputNotificationAction(
            identifier: "reply", title: "Reply", options: [], textInputButtonTitle: "Send", textInputPlaceholder: "Your answer")
        func category(_ identifier: String, _ actions: [UNNotificationAction]) -> UNNotificationCategory {
            UNNotificationCategory(
                identifier: identifier, actions: actions, intentIdentifiers: [], options: .customDismissAction)
        }
        center.setNotificationCategories([
            category("plain", []), category("buttons", [accept, later]), category("typed", [reply, later]),
        ])
    }

    /// Returns the presentation options of `PROVING_PRESENT`. The value of `PROVING_PRESENT` is the raw value of the options. If
    /// the value is "silence", the delegate does not respond.
    func userNotificationCenter(
        _ center: UNUserNotificationCenter, willPresent notification: UNNotification,
        withCompletionHandler completionHandler: @escaping @Sendable (UNNotificationPresentationOptions) -> Void
    ) {
        if !isBurst.withLock({ $0 }) { log.write("asked \(notification.request.identifier)") }
        let wish = ProcessInfo.processInfo.environment["PROVING_PRESENT"]
        if wish == "silence" { return }
        completionHandler(
            wish.flatMap { UInt($0) }.map(UNNotificationPresentationOptions.init(rawValue:)) ?? [.banner, .sound, .badge])
    }

    func userNotificationCenter(_ center: UNUserNotificationCenter, didReceive response: UNNotificationResponse) async {
        let text = (response as? UNTextInputNotificationResponse).map { " " + $0.userText } ?? ""
        log.write("response \(response.notification.request.identifier) \(response.actionIdentifier)\(text)")
    }

    /// - Parameter pairs: Pairs KEY=VALUE with the keys title, subtitle, body, category, thread, level, sound, badge, picture,
    ///   seconds, repeats and count. The value of the key `stays` is the number of seconds for which the process continues.
    func add(_ identifier: String, _ pairs: [String]) throws {
        let values = Dictionary(
            pairs.map { pair in
                let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
                return (parts[0], parts.count > 1 ? parts[1] : "")
            }, uniquingKeysWith: { $1 })
        let content = UNMutableNotificationContent()
        content.title = values["title"] ?? identifier
        content.subtitle = values["subtitle"] ?? ""
        content.body = values["body"] ?? ""
        content.categoryIdentifier = values["category"] ?? "buttons"
        content.threadIdentifier = values["thread"] ?? ""
        content.interruptionLevel =
            values["level"].flatMap { UInt($0) }.flatMap(UNNotificationInterruptionLevel.init(rawValue:)) ?? .active
        content.sound = values["sound"].map { $0.isEmpty ? .default : UNNotificationSound(named: UNNotificationSoundName($0)) }
        content.badge = values["badge"].flatMap { Int($0) }.map { NSNumber(value: $0) }
        if let picture = values["picture"] {
            content.attachments = [
                try UNNotificationAttachment(identifier: "picture", url: URL(fileURLWithPath: picture), options: nil)
            ]
        }
        let trigger = values["seconds"].flatMap { Double($0) }.map {
            UNTimeIntervalNotificationTrigger(timeInterval: $0, repeats: values["repeats"] == "1")
        }
        let count = values["count"].flatMap { Int($0) }
        // For a thousand notifications, log lines on the disk would take most of the time.
        isBurst.withLock { $0 = (count ?? 1) > 100 }
        let begun = ContinuousClock.now
        for number in 1...(count ?? 1) {
            let name = count == nil ? identifier : "\(identifier)-\(number)"
            // Servers combine notifications with equal texts, so each title contains a number.
            if count != nil { content.title = "\(values["title"] ?? identifier) \(number)" }
            let request = UNNotificationRequest(identifier: name, content: content, trigger: trigger)
            let failure = Mutex<(any Error)?>(nil)
            // The completion handler is called before `add` returns.
            center.add(request) { error in failure.withLock { $0 = error } }
            if let error = failure.withLock({ $0 }) { throw error }
            if count ?? 1 <= 100 { log.write("added \(name)") }
        }
        if let count {
            let seconds = (ContinuousClock.now - begun) / .seconds(1)
            print("added \(count) in \(seconds.formatted(.number.precision(.fractionLength(2)))) s")
        }
        if ProcessInfo.processInfo.environment["PROVING_LEAVES"] == nil { waitForAnswers() }
        if let seconds = values["stays"].flatMap({ Double($0) }) { RunLoop.main.run(until: Date(timeIntervalSinceNow: seconds)) }
    }

    /// Waits until the delegate has responded. The delegate is called only after `add`.
    private func waitForAnswers() {
        let isOver = Mutex(false)
        Task {
            await OutstandingCalls.shared.finished()
            isOver.withLock { $0 = true }
        }
        // The delegate is called on this thread, so the thread runs its run loop.
        while !isOver.withLock({ $0 }) { RunLoop.main.run(until: Date(timeIntervalSinceNow: 0.02)) }
    }

    func removeFromDesktop(_ identifiers: [String]) {
        center.removePendingNotificationRequests(withIdentifiers: identifiers)
        center.removeDeliveredNotifications(withIdentifiers: identifiers)
    }

    /// Prints the notifications that are reported as delivered and as pending.
    func list() {
        let done = DispatchSemaphore(value: 0)
        center.getDeliveredNotifications { [center] delivered in
            for notification in delivered { print("delivered \(notification.request.identifier)") }
            center.getPendingNotificationRequests { pending in
                for request in pending { print("pending \(request.identifier)") }
                done.signal()
            }
        }
        done.wait()
    }
}
