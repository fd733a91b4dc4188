import BackgroundTasks
import BackgroundTasksTesting
import Foundation
import Synchronization

/// Simulates a year of a daily refresh with the test kit, like a test of an app author.
package enum YearOfNoons {
    /// Returns the times when the handler was called, and the number of seconds that the year took.
    package static func play() async throws -> (noons: [Date], seconds: Double) {
        let began = ContinuousClock.now
        let noons = try await TestDriver.run(permitting: ["noon"]) { driver in
            let dates = Mutex<[Date]>([])
            BGTaskScheduler.shared.register(forTaskWithIdentifier: "noon", using: nil) { task in
                dates.withLock { $0.append(driver.clock.date) }
                task.setTaskCompleted(success: true)
            }
            let request = BGAppRefreshTaskRequest(identifier: "noon")
            request.recurrence = .daily(.noon)
            try BGTaskScheduler.shared.submit(request)
            try await driver.advance(by: .seconds(365 * 86_400))
            return dates.withLock { $0 }
        }
        return (noons, (ContinuousClock.now - began) / .seconds(1))
    }
}
