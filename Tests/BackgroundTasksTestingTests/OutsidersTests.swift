import BackgroundTasks
import BackgroundTasksTesting
import BackgroundTransfer
import Foundation
import Synchronization
import Testing

/// The tests that app developers usually write first.
@Suite(.timeLimit(.minutes(30))) struct OutsidersTests {
    /// A podcast app. The session and the delegate live as long as the app.
    private final class Episodes: NSObject, URLSessionDownloadDelegate, Sendable {
        let kept = Mutex<[String]>([])
        let written = Mutex<Int64>(0)

        func urlSession(_ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL) {
            let text = (try? String(contentsOf: location, encoding: .utf8)) ?? "unreadable"
            kept.withLock { $0.append(text) }
        }

        func urlSession(
            _ session: URLSession, downloadTask: URLSessionDownloadTask, didWriteData bytesWritten: Int64,
            totalBytesWritten: Int64, totalBytesExpectedToWrite: Int64
        ) { written.withLock { $0 = max($0, totalBytesWritten) } }
    }

    /// The refresh task begins downloads, and ends before the downloads are complete. When a download ends in virtual time, the
    /// delegate is called at the same virtual time.
    @Test func `a podcast app receives its episodes in virtual time`() async throws {
        try await TestDriver.run(permitting: ["feed"]) { driver in
            let server = driver.network.server("https://podcast.test")
            for number in 1...3 { server.route(nil, "/\(number)", .status(200, body: .text("episode \(number)"))) }
            let episodes = Episodes()
            let session = URLSession(
                configuration: .background(withIdentifier: "episodes"), delegate: episodes, delegateQueue: nil)
            BGTaskScheduler.shared.register(forTaskWithIdentifier: "feed", using: nil) { task in
                for number in 1...3 {
                    guard let url = URL(string: "https://podcast.test/\(number)") else { continue }
                    session.downloadTask(with: url).resume()
                }
                task.setTaskCompleted(success: true)
            }
            let request = BGAppRefreshTaskRequest(identifier: "feed")
            request.earliestBeginDate = driver.clock.date.addingTimeInterval(3_600)
            try BGTaskScheduler.shared.submit(request)
            #expect(try await driver.advanceToNextLaunch().outcome == .completed)
            try await driver.advance(by: .seconds(60))
            #expect(episodes.kept.withLock { $0.sorted() } == ["episode 1", "episode 2", "episode 3"])
        }
    }

    @Test(arguments: [true, false])
    func `a processing task can submit its next request before or after its completion`(_ submitsFirst: Bool) async throws {
        try await TestDriver.run(permitting: ["clean"]) { driver in
            let submit: @Sendable () -> Void = {
                let request = BGProcessingTaskRequest(identifier: "clean")
                request.earliestBeginDate = driver.clock.date.addingTimeInterval(3_600)
                try? BGTaskScheduler.shared.submit(request)
            }
            BGTaskScheduler.shared.register(forTaskWithIdentifier: "clean", using: nil) { task in
                let work = Task {
                    try? await driver.clock.sleep(for: .seconds(30))
                    if submitsFirst { submit() }
                    task.setTaskCompleted(success: !Task.isCancelled)
                    if !submitsFirst { submit() }
                }
                task.expirationHandler = { work.cancel() }
            }
            let start = driver.clock.date
            submit()
            for number in 1...4 {
                let launch = try await driver.advanceToNextLaunch()
                #expect(launch.startedAt.timeIntervalSince(start) == Double(number) * 3_600 + Double(number - 1) * 30)
                #expect(try await driver.finish(launch).outcome == .completed)
            }
        }
    }

    /// The second request becomes due while the test waits for the end of the first launch.
    @Test func `a launch that begins while the test waits for another launch is the next launch`() async throws {
        try await TestDriver.run(permitting: ["a", "b"]) { driver in
            for identifier in ["a", "b"] {
                BGTaskScheduler.shared.register(forTaskWithIdentifier: identifier, using: nil) { task in
                    Task {
                        try? await driver.clock.sleep(for: .seconds(30))
                        task.setTaskCompleted(success: true)
                    }
                }
            }
            try await driver.setConditions { $0.isOnExternalPower = false }
            let waiting = BGProcessingTaskRequest(identifier: "a")
            waiting.requiresExternalPower = true
            try BGTaskScheduler.shared.submit(waiting)
            try await driver.settle()
            try await driver.setConditions { $0.isOnExternalPower = true }
            let first = try await driver.advanceToNextLaunch()
            #expect(first.identifier == "a")
            let soon = BGProcessingTaskRequest(identifier: "b")
            soon.earliestBeginDate = driver.clock.date.addingTimeInterval(10)
            try BGTaskScheduler.shared.submit(soon)
            #expect(try await driver.finish(first).outcome == .completed)
            let second = try await driver.advanceToNextLaunch()
            #expect(second.identifier == "b")
            #expect(try await driver.finish(second).outcome == .completed)
        }
    }
}
