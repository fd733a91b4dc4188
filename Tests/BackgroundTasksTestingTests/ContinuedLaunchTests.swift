import BackgroundTasks
import BackgroundTasksTesting
import BackgroundTransfer
import Foundation
import Synchronization
import Testing
import UserNotifications

/// Tests of launches whose handlers return while transfers of these launches are running.
@Suite(.timeLimit(.minutes(30))) struct ContinuedLaunchTests {
    private final class ReceivedEvents: NSObject, URLSessionDownloadDelegate, Sendable {
        let files = Mutex<[String]>([])
        /// The closure that is called when a task has ended, with the number of files so far.
        let next: @Sendable (URLSession, Int) -> Void

        init(next: @escaping @Sendable (URLSession, Int) -> Void = { _, _ in }) { self.next = next }

        func urlSession(_ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL) {
            let text = (try? String(contentsOf: location, encoding: .utf8)) ?? "unreadable"
            files.withLock { $0.append(text) }
        }

        func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
            next(session, files.withLock { $0.count })
        }
    }

    private static let origin = "https://podcast.test"

    private static func url(_ path: String) throws -> URL { try #require(URL(string: origin + path)) }

    private static func configuration(_ isBackground: Bool) -> URLSessionConfiguration {
        isBackground ? .background(withIdentifier: "episodes") : .ephemeral
    }

    /// Registers a handler that begins a download and returns immediately.
    private static func register(
        _ heard: ReceivedEvents, first: URL, _ configuration: @escaping @Sendable () -> URLSessionConfiguration
    ) {
        BGTaskScheduler.shared.register(forTaskWithIdentifier: "work", using: nil) { task in
            URLSession(configuration: configuration(), delegate: heard, delegateQueue: nil).downloadTask(with: first).resume()
            task.setTaskCompleted(success: true)
        }
    }

    private static func launch(_ driver: TestDriver) async throws -> LaunchReport {
        try BGTaskScheduler.shared.submit(BGProcessingTaskRequest(identifier: "work"))
        return try await driver.finish(driver.advanceToNextLaunch())
    }

    private static func seconds(_ launch: LaunchReport) throws -> Double {
        try #require(launch.endedAt).timeIntervalSince(launch.startedAt)
    }

    /// The launch is not repeated, as on iOS. A repeated launch would begin its transfers a second time.
    @Test(arguments: [true, false])
    func `a launch that began transfers and used up its time is not repeated`(_ begins: Bool) async throws {
        try await TestDriver.run(permitting: ["refresh"]) { driver in
            await driver.setPatience(.milliseconds(50))
            driver.network.server(Self.origin).route(nil, "/1", .status(200, body: "one").after(.delay(100)))
            let first = try Self.url("/1")
            let calls = Mutex(0)
            BGTaskScheduler.shared.register(forTaskWithIdentifier: "refresh", using: nil) { task in
                calls.withLock { $0 += 1 }
                if begins { URLSession(configuration: Self.configuration(true)).downloadTask(with: first).resume() }
                // The handler never completes its task.
                task.expirationHandler = {}
            }
            try BGTaskScheduler.shared.submit(BGAppRefreshTaskRequest(identifier: "refresh"))
            #expect(try await driver.finish(driver.advanceToNextLaunch()).outcome == .killed)
            try await driver.advance(by: .seconds(60))
            #expect(calls.withLock { $0 > 1 } == !begins)
        }
    }

    @Test(arguments: [true, false])
    func `a launch continues until the transfers that it began have ended`(_ isBackground: Bool) async throws {
        try await TestDriver.run(permitting: ["work"]) { driver in
            driver.network.server(Self.origin).route(nil, "/1", .status(200, body: "one").after(.delay(10)))
            let heard = ReceivedEvents()
            Self.register(heard, first: try Self.url("/1")) { Self.configuration(isBackground) }
            let launch = try await Self.launch(driver)
            #expect(launch.outcome == .completed && launch.stopReason == nil)
            #expect(try (10..<20).contains(Self.seconds(launch)))
            #expect(heard.files.withLock { $0 } == ["one"])
            try await driver.advance(by: .seconds(60))
            #expect(driver.ledger.history.count == 1, "the app received the end in the launch that began the transfer")
        }
    }

    @Test(arguments: [true, false])
    func `a launch continues for thirty seconds at most and ends as completed`(_ isBackground: Bool) async throws {
        try await TestDriver.run(permitting: ["work"]) { driver in
            driver.network.server(Self.origin).route(nil, "/1", .status(200, body: "one").after(.delay(100)))
            let heard = ReceivedEvents()
            Self.register(heard, first: try Self.url("/1")) { Self.configuration(isBackground) }
            let launch = try await Self.launch(driver)
            #expect(launch.outcome == .completed && launch.stopReason == nil)
            #expect(try (29.99..<31).contains(Self.seconds(launch)))
            #expect(heard.files.withLock { $0.isEmpty } && driver.ledger.requests.isEmpty)
        }
    }

    /// The handlers of a refresh have thirty seconds. The continuation after these thirty seconds has a separate limit.
    @Test func `the time of the handlers does not count as continuation`() async throws {
        try await TestDriver.run(permitting: ["work"]) { driver in
            driver.network.server(Self.origin).route(nil, "/1", .status(200, body: "one").after(.delay(20)))
            let (heard, first) = (ReceivedEvents(), try Self.url("/1"))
            BGTaskScheduler.shared.register(forTaskWithIdentifier: "work", using: nil) { task in
                Task {
                    try? await driver.clock.sleep(for: .seconds(25))
                    let session = URLSession(configuration: Self.configuration(true), delegate: heard, delegateQueue: nil)
                    session.downloadTask(with: first).resume()
                    task.setTaskCompleted(success: true)
                }
            }
            try BGTaskScheduler.shared.submit(BGAppRefreshTaskRequest(identifier: "work"))
            let launch = try await driver.finish(driver.advanceToNextLaunch())
            #expect(launch.outcome == .completed && launch.stopReason == nil)
            #expect(heard.files.withLock { $0 } == ["one"])
        }
    }

    @Test(arguments: [true, false])
    func `a launch continues for transfers that a delegate begins`(_ isBackground: Bool) async throws {
        try await TestDriver.run(permitting: ["work"]) { driver in
            let server = driver.network.server(Self.origin)
            for path in ["/1", "/2"] { server.route(nil, path, .status(200, body: .text(path)).after(.delay(5))) }
            let second = try Self.url("/2")
            let heard = ReceivedEvents { session, count in if count == 1 { session.downloadTask(with: second).resume() } }
            Self.register(heard, first: try Self.url("/1")) { Self.configuration(isBackground) }
            let launch = try await Self.launch(driver)
            #expect(launch.outcome == .completed && driver.ledger.history.count == 1)
            #expect(heard.files.withLock { $0 } == ["/1", "/2"])
        }
    }

    /// The transfer waits for its next attempt, or for a condition.
    @Test(arguments: ["server", "condition"])
    func `a transfer without a running attempt does not extend a launch`(_ what: String) async throws {
        try await TestDriver.run(permitting: ["work"]) { driver in
            driver.network.server(Self.origin).route(nil, "/1", .status(200, body: "one"))
            if what == "server" {
                driver.network.takeAway(Self.origin)
            } else {
                try await driver.setConditions { $0.isNetworkMetered = true }
            }
            Self.register(ReceivedEvents(), first: try Self.url("/1")) {
                let configuration = Self.configuration(true)
                configuration.allowsExpensiveNetworkAccess = what == "server"
                return configuration
            }
            let launch = try await Self.launch(driver)
            #expect(launch.outcome == .completed)
            #expect(try Self.seconds(launch) < 10)
        }
    }

    @Test func `a suspended task does not extend a launch`() async throws {
        try await TestDriver.run(permitting: ["work"]) { driver in
            driver.network.server(Self.origin).route(nil, "/1", .status(200, body: "one").after(.delay(10)))
            let (heard, first) = (ReceivedEvents(), try Self.url("/1"))
            BGTaskScheduler.shared.register(forTaskWithIdentifier: "work", using: nil) { task in
                let session = URLSession(configuration: Self.configuration(false), delegate: heard, delegateQueue: nil)
                let download = session.downloadTask(with: first)
                download.resume()
                download.suspend()
                task.setTaskCompleted(success: true)
            }
            let launch = try await Self.launch(driver)
            #expect(launch.outcome == .completed)
            #expect(try Self.seconds(launch) < 1)
        }
    }

    @Test func `a launch that continues does not delay the launches of other requests`() async throws {
        try await TestDriver.run(permitting: ["work", "other"]) { driver in
            driver.network.server(Self.origin).route(nil, "/1", .status(200, body: "one").after(.delay(100)))
            Self.register(ReceivedEvents(), first: try Self.url("/1")) { Self.configuration(false) }
            BGTaskScheduler.shared.register(forTaskWithIdentifier: "other", using: nil) { $0.setTaskCompleted(success: true) }
            let later = BGProcessingTaskRequest(identifier: "other")
            later.earliestBeginDate = driver.clock.date.addingTimeInterval(10)
            try BGTaskScheduler.shared.submit(later)
            try BGTaskScheduler.shared.submit(BGProcessingTaskRequest(identifier: "work"))
            let work = try await driver.advanceToNextLaunch()
            let other = try await driver.finish(driver.advanceToNextLaunch())
            let continued = try await driver.finish(work)
            #expect(work.identifier == "work" && other.identifier == "other")
            #expect(try #require(other.endedAt) < #require(continued.endedAt))
        }
    }

    @Test(arguments: [true, false])
    func `launches end with their handlers if the app disables continuation`(_ isBackground: Bool) async throws {
        try await TestDriver.run(permitting: ["work"]) { driver in
            driver.network.server(Self.origin).route(nil, "/1", .status(200, body: "one").after(.delay(10)))
            var settings = BackgroundSettings()
            settings.continuation = 0
            try settings.apply()
            Self.register(ReceivedEvents(), first: try Self.url("/1")) { Self.configuration(isBackground) }
            let launch = try await Self.launch(driver)
            #expect(launch.outcome == .completed)
            #expect(try Self.seconds(launch) < 1)
        }
    }

    /// When the delegate has received the end of the transfer, the handler still has work.
    @Test(arguments: [LaunchOutcome.failed, .expired, .crashed])
    func `an end that a delegate received is delivered once for every outcome of the launch`(
        _ outcome: LaunchOutcome
    ) async throws {
        try await TestDriver.run(permitting: ["work"]) { driver in
            driver.network.server(Self.origin).route(nil, "/1", .status(200, body: "one"))
            let (heard, first) = (ReceivedEvents(), try Self.url("/1"))
            BGTaskScheduler.shared.register(forTaskWithIdentifier: "work", using: nil) { task in
                guard heard.files.withLock({ $0.isEmpty }) else { return task.setTaskCompleted(success: true) }
                let session = URLSession(configuration: Self.configuration(true), delegate: heard, delegateQueue: nil)
                session.downloadTask(with: first).resume()
                Task {
                    try? await driver.clock.sleep(for: .seconds(20))
                    task.setTaskCompleted(success: false)
                }
            }
            try BGTaskScheduler.shared.submit(BGProcessingTaskRequest(identifier: "work"))
            let launch = try await driver.advanceToNextLaunch()
            if outcome != .failed {
                try await driver.advance(by: .seconds(10))
                if outcome == .expired { try await driver.simulateExpiration() } else { try await driver.killApp() }
            }
            #expect(try await driver.finish(launch).outcome == outcome)
            try await driver.advance(by: .seconds(120))
            #expect(heard.files.withLock { $0 } == ["one"])
            #expect(driver.ledger.history.allSatisfy { $0.kind == .processing }, "no launch delivers it again")
        }
    }

    /// Begins two uploads. In the first launch, the process stops after it has begun the first upload.
    private final class TwoUploads: NSObject, UNUserNotificationCenterDelegate, Sendable {
        let file: URL
        let hasKeys: Bool
        let stop: @Sendable () async -> Void
        let calls = Mutex(0)

        init(_ file: URL, hasKeys: Bool, stop: @escaping @Sendable () async -> Void) {
            (self.file, self.hasKeys, self.stop) = (file, hasKeys, stop)
        }

        func userNotificationCenter(_ center: UNUserNotificationCenter, didReceive response: UNNotificationResponse) async {
            let isFirst = calls.withLock { calls in
                calls += 1
                return calls == 1
            }
            let session = URLSession(configuration: .background(withIdentifier: "photos"))
            for name in ["one", "two"] {
                let request = URLRequest(url: URL(string: "https://api.test/" + name)!)
                let task = session.uploadTask(with: request, fromFile: file)
                if hasKeys { task.submissionKey = name }
                task.resume()
                if isFirst { return await stop() }
            }
        }
    }

    /// The user chose several photos. While the process queues the photos, the process is killed or its time is up.
    @Test(arguments: [true, false], [true, false])
    func `a press is delivered again until all uploads with a submission key are begun`(
        hasKeys: Bool, isKilled: Bool
    ) async throws {
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("two-uploads-\(UUID())")
        try Data("photo".utf8).write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        try await TestDriver.run(permitting: []) { driver in
            let delegate = TwoUploads(file, hasKeys: hasKeys) { try? await driver.clock.sleep(for: .seconds(20)) }
            let server = driver.network.server("https://api.test")
            for path in ["/one", "/two"] { server.route(nil, path, .status(200)) }
            let center = UNUserNotificationCenter.current()
            center.delegate = delegate
            let content = UNMutableNotificationContent()
            content.title = "Storm"
            try await center.add(UNNotificationRequest(identifier: "n", content: content, trigger: nil))
            try await driver.advance(by: .seconds(1))
            #expect(driver.notifications.press(on: "n"))
            try await driver.advanceToNextLaunch()
            if isKilled { try await driver.killApp() } else { try await driver.simulateExpiration() }
            try await driver.advance(by: .seconds(600))
            #expect(server.requests().map(\.path).sorted() == (hasKeys ? ["/one", "/two"] : ["/one"]))
            #expect(delegate.calls.withLock { $0 } == (hasKeys ? 2 : 1))
        }
    }

    private final class WaitingDelegate: NSObject, UNUserNotificationCenterDelegate, Sendable {
        let wait: @Sendable () async throws -> Void
        let wasCancelled = Mutex(false)

        init(wait: @escaping @Sendable () async throws -> Void) { self.wait = wait }

        func userNotificationCenter(_ center: UNUserNotificationCenter, didReceive response: UNNotificationResponse) async {
            try? await wait()
            if Task.isCancelled { wasCancelled.withLock { $0 = true } }
        }
    }

    @Test func `the async method of a response is cancelled when the launch reaches its time limit`() async throws {
        try await TestDriver.run(permitting: []) { driver in
            let delegate = WaitingDelegate { try await driver.clock.sleep(for: .seconds(3_600)) }
            let center = UNUserNotificationCenter.current()
            center.delegate = delegate
            let content = UNMutableNotificationContent()
            content.title = "Storm"
            try await center.add(UNNotificationRequest(identifier: "n", content: content, trigger: nil))
            try await driver.advance(by: .seconds(1))
            #expect(driver.notifications.press(on: "n"))
            try await driver.advanceToNextLaunch()
            #expect(try await driver.simulateExpiration().outcome == .expired)
            #expect(delegate.wasCancelled.withLock { $0 })
        }
    }
}
