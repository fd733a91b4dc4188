import BackgroundTasks
import BackgroundTasksTesting
import BackgroundTransfer
import Foundation
import Synchronization
import Testing
import UserNotifications

/// Tests of values that an app reads back. An app reads the same values as on iOS.
@Suite struct HandlerPendingTests {
    private final class Seen: Sendable {
        let counts = Mutex<[Int]>([])
        func note(_ count: Int) { counts.withLock { $0.append(count) } }
    }

    /// A handler that submits a request if none is pending continues its chain of requests.
    @Test func `the request that a launch serves is not pending`() async throws {
        let seen = Seen()
        try await TestDriver.run(permitting: ["work"]) { driver in
            BGTaskScheduler.shared.register(forTaskWithIdentifier: "work", using: nil) { task in
                Task {
                    let pending = await BGTaskScheduler.shared.pendingTaskRequests()
                    seen.note(pending.count)
                    if pending.isEmpty { try? BGTaskScheduler.shared.submit(BGProcessingTaskRequest(identifier: "work")) }
                    let after = await BGTaskScheduler.shared.pendingTaskRequests()
                    seen.note(after.count)
                    task.setTaskCompleted(success: true)
                }
            }
            try BGTaskScheduler.shared.submit(BGProcessingTaskRequest(identifier: "work"))
            #expect(await BGTaskScheduler.shared.pendingTaskRequests().count == 1)
            for _ in 0..<2 {
                #expect(try await driver.finish(driver.advanceToNextLaunch()).outcome == .completed)
            }
            #expect(await BGTaskScheduler.shared.pendingTaskRequests().count == 1)
        }
        #expect(seen.counts.withLock { $0 } == [0, 1, 0, 1])
    }

    /// The user info can be any property list. A property list can contain dates and bytes, which JSON cannot contain.
    @Test func `the user info of a notification is read as it was written`() async throws {
        try await TestDriver.run(permitting: []) { _ in
            let content = UNMutableNotificationContent()
            content.title = "Due"
            let date = Date(timeIntervalSince1970: 1_700_000_000.5)
            content.userInfo = ["at": date, "bytes": Data([0, 255]), "list": [1, "two"], "deep": ["x": true]]
            let center = UNUserNotificationCenter.current()
            let trigger = UNTimeIntervalNotificationTrigger(timeInterval: 60, repeats: false)
            try await center.add(UNNotificationRequest(identifier: "due", content: content, trigger: trigger))
            let kept = try #require(await center.pendingNotificationRequests().first?.content.userInfo)
            #expect(kept["at"] as? Date == date && kept["bytes"] as? Data == Data([0, 255]))
            #expect((kept["deep"] as? [String: Any])?["x"] as? Bool == true && (kept["list"] as? [Any])?.count == 2)
            content.userInfo = ["no": NSObject()]
            let refused = UNNotificationRequest(identifier: "no", content: content, trigger: nil)
            await #expect(throws: UNError.self) { try await center.add(refused) }
        }
    }
}
