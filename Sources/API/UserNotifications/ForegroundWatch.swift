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
    private static let lead = 1.0
    /// Seconds between two looks while others write to the ledger.
    private static let shortestSleep = 0.5
    /// Seconds after which the clock is looked at again: it may be set.
    private static let longestSleep = 60.0
    /// Seconds that a process lives before it looks: most commands are over by then.
    private static let firstSleep = 1.0

    private let hasBegun = Mutex(false)

    /// Looks from now on, whenever the ledger changes or something is about to come. Nobody is asked by a launch of the agent's, and nobody in
    /// a test with a time of its own.
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
            // Where nothing can be heard, the clock alone says when to look.
            if token == nil { token = try? AppRuntime.shared.onCommit { due.yield() } }
            let pause = askAboutNext(center, retry) { due.yield() }
            timer?.cancel()
            timer = Task { if (try? await Task.sleep(for: .seconds(pause))) != nil { due.yield() } }
            try? await Task.sleep(for: .seconds(min(pause, shortestSleep)))
        }
    }

    /// - Parameter again: looks again, called if the ledger cannot be read.
    /// - Returns: seconds until it is worth looking again.
    private static func askAboutNext(
        _ center: UNUserNotificationCenter, _ retry: ReadRetry, again: @escaping @Sendable () -> Void
    ) -> Double {
        // Nobody has to be asked: a delegate may be set later.
        guard center.delegate != nil else { return longestSleep }
        guard let coming = try? AppRuntime.shared.ledger().readAfterRing({ try $0.notificationsToCome() }) else {
            retry.failed(again: again)
            return longestSleep
        }
        retry.succeeded()
        let now = AppRuntime.shared.now
        var next: Date?
        for record in coming where !record.isAgents && record.isComing {
            guard let due = record.schedule?.next, due > now else { continue }
            if due.timeIntervalSince(now) <= lead { ask(center, record.identifier, due) } else { next = min(next ?? due, due) }
        }
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
        Task {
            try? await Task.sleep(for: .seconds(max(0, due.timeIntervalSince(AppRuntime.shared.now))))
            let wish = await ForegroundQuestion(UNNotificationRequest(held), center).answer()
            await SettledAnswers.shared.settle(identifier, revision: held.revision, wish)
            calls.leave()
        }
    }
}
