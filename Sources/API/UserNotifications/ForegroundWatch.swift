import BackgroundLedger
import BackgroundNotices
import BackgroundRuntime
import Foundation
import Synchronization

/// Asks the delegate of an app that a person runs about notifications whose trigger comes while it runs.
///
/// Just before its time such a notification is held; the agent waits for the answer as for one of what is added. Where this process is late, or
/// has died, the notification comes by itself.
final class ForegroundWatch: Sendable {
    static var shared: ForegroundWatch { AppRuntime.shared.part { ForegroundWatch() } }

    /// Seconds before its time at which a notification is held.
    private static let lead = 0.5
    /// Seconds after which the clock is looked at again: it may be set.
    private static let longestSleep = 60.0
    /// Seconds that a process lives before it looks: most commands are over by then.
    private static let firstSleep = 1.0

    private let task = Mutex<Task<Void, Never>?>(nil)

    /// Looks from now on, and anew where it looks already. Nobody is asked by a launch of the agent's, and nobody in a test with a time of its own.
    func begin(_ center: UNUserNotificationCenter) {
        guard LaunchContext.current == nil, !AppRuntime.isOnTestHost, center.delegate != nil else { return }
        task.withLock { task in
            let first = task == nil ? Self.firstSleep : 0
            task?.cancel()
            task = Task { await Self.watch(center, first) }
        }
    }

    private static func watch(_ center: UNUserNotificationCenter, _ first: Double) async {
        var pause: Double? = first
        while let seconds = pause, (try? await Task.sleep(for: .seconds(seconds))) != nil, center.delegate != nil {
            pause = askAboutNext(center)
        }
    }

    /// - Returns: seconds until it is worth looking again; `nil`: nothing is to come.
    private static func askAboutNext(_ center: UNUserNotificationCenter) -> Double? {
        let coming = (try? AppRuntime.shared.ledger().read { try $0.notificationsToCome() }) ?? []
        let now = AppRuntime.shared.now
        var next: Date?
        for record in coming where !record.isAgents && record.isComing {
            guard let due = record.schedule?.next, due > now else { continue }
            if due.timeIntervalSince(now) <= lead {
                ask(center, record.identifier, due)
            } else {
                next = min(next ?? due, due)
            }
        }
        if coming.isEmpty { return nil }
        return min(next.map { max($0.timeIntervalSince(now) - lead, 0.01) } ?? longestSleep, longestSleep)
    }

    private static func ask(_ center: UNUserNotificationCenter, _ identifier: String, _ due: Date) {
        let now = AppRuntime.shared.now
        let held: NotificationRecord?
        do {
            held = try AppRuntime.shared.commit { try $0.holdNotification(identifier, dueAt: due, now: now) }
        } catch {
            return AppRuntime.shared.report("the delegate is not asked about \(identifier), which is shown: \(error)")
        }
        guard let held else { return }
        let calls = OutstandingCalls.shared
        calls.enter()
        // A task of its own: a new look does not end it.
        Task {
            try? await Task.sleep(for: .seconds(max(0, due.timeIntervalSince(AppRuntime.shared.now))))
            let wish = await ForegroundQuestion(UNNotificationRequest(held), center).answer()
            await SettledAnswers.shared.settle(identifier, revision: held.revision, wish)
            calls.leave()
        }
    }
}
