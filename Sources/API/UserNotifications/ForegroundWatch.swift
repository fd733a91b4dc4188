import BackgroundLedger
import BackgroundNotices
import BackgroundRuntime
import Foundation
import Synchronization

/// Calls the delegate for notifications whose trigger is due while a user runs the app.
///
/// Shortly before the notification is due, this process marks the notification as held in the ledger. The agent then waits for
/// the delegate's decision before it shows the notification. If the decision arrives late, or this process was killed, the agent
/// shows the notification unchanged.
final class ForegroundWatch: Sendable {
    static var shared: ForegroundWatch { AppRuntime.shared.part { ForegroundWatch() } }

    /// The number of seconds before the fire date at which this process marks a notification as held.
    private static let lead = 1.0
    /// The minimum number of seconds between two reads while other processes write to the ledger.
    private static let shortestSleep = 0.5
    /// The maximum number of seconds between two reads. Without a maximum, a notification could be missed if the user sets the
    /// clock.
    private static let longestSleep = 60.0
    /// The number of seconds before the first read. Most commands end earlier, so they need no read.
    private static let firstSleep = 1.0

    private let hasBegun = Mutex(false)

    /// Begins to watch the notifications. The process reads the ledger when the ledger changes or a notification is due soon. In
    /// a process that the agent launched, or in a test with virtual time, this method does nothing.
    func begin(_ center: UNUserNotificationCenter) {
        guard LaunchContext.current == nil, !AppRuntime.isOnTestHost else { return }
        let isFirst = hasBegun.withLock { hasBegun in
            defer { hasBegun = true }
            return !hasBegun
        }
        if isFirst { Task { await Self.watch(center) } }
    }

    private static func watch(_ center: UNUserNotificationCenter) async {
        try? await Task.sleep(for: .seconds(firstSleep))
        let (looks, due) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        var token: DatabaseWatch.Token?
        defer { token?.cancel() }
        due.yield()
        var timer: Task<Void, Never>?
        let retry = ReadRetry()
        for await _ in looks {
            // If the process cannot receive change notifications, only the timer starts the reads.
            if token == nil { token = try? AppRuntime.shared.onCommit { due.yield() } }
            let pause = askAboutNext(center, retry) { due.yield() }
            timer?.cancel()
            timer = Task { if (try? await Task.sleep(for: .seconds(pause))) != nil { due.yield() } }
            try? await Task.sleep(for: .seconds(min(pause, shortestSleep)))
        }
    }

    /// - Parameter again: a closure that reads again. The closure is called if the ledger cannot be read.
    /// - Returns: the number of seconds to wait before the next read.
    private static func askAboutNext(
        _ center: UNUserNotificationCenter, _ retry: ReadRetry, again: @escaping @Sendable () -> Void
    ) -> Double {
        // Without a delegate the ledger is not read. The check is repeated later, because the app may set a delegate.
        guard center.delegate != nil else { return longestSleep }
        guard let coming = try? AppRuntime.shared.ledger().readAfterRing({ try $0.notificationsToCome() }) else {
            retry.failed(again: again)
            return longestSleep
        }
        retry.succeeded()
        let now = AppRuntime.shared.now
        var next: Date?
        for record in coming where !record.isAgents && record.willBeShown {
            guard let due = record.schedule?.next, due > now else { continue }
            if due.timeIntervalSince(now) <= lead {
                requestDecision(center, record.identifier, due)
            } else {
                next = min(next ?? due, due)
            }
        }
        return min(next.map { max($0.timeIntervalSince(now) - lead, 0.01) } ?? longestSleep, longestSleep)
    }

    private static func requestDecision(_ center: UNUserNotificationCenter, _ identifier: String, _ due: Date) {
        let now = AppRuntime.shared.now
        let held: NotificationRecord?
        do {
            held = try AppRuntime.shared.commit { try $0.holdNotification(identifier, dueAt: due, now: now) }
        } catch {
            return AppRuntime.shared.report(
                "notification \(identifier) is shown without a decision of the delegate: \(error)")
        }
        guard let held else { return }
        let calls = OutstandingCalls.shared
        calls.enter()
        Task {
            try? await Task.sleep(for: .seconds(max(0, due.timeIntervalSince(AppRuntime.shared.now))))
            let wish = await PresentationDecision(UNNotificationRequest(held), center).answer()
            await PresentationRecorder.shared.record(identifier, revision: held.revision, wish)
            calls.leave()
        }
    }
}
