import BackgroundScenes
import BackgroundTasks
import BackgroundTasksTesting
import BackgroundTransfer
import ServerScripts
import Foundation
import Simulation
import Synchronization
import Testing
import UserNotifications

/// Tests of an app, written in the style of the tutorial.
@Suite struct TestDriverTests {
    /// The error message contains the reason.
    @Test func `a web socket does not reach the real network during a test`() async throws {
        try await TestDriver.run(permitting: []) { _ in
            let task = URLSession.shared.webSocketTask(with: try #require(URL(string: "wss://example.org/chat")))
            task.resume()
            let error = await #expect(throws: URLError.self) { _ = try await task.receive() }
            #expect(error?.code == .notConnectedToInternet && error?.localizedDescription.contains("loopback") == true)
        }
    }

    @Test func `a test keeps every guarantee except waking the system`() async throws {
        try await TestDriver.run(permitting: []) { _ in
            let guarantees = BackgroundGuarantees.current
            #expect(guarantees.all.filter { !$0.isKept }.map(\.name) == [.wakesSystem])
        }
    }

    @Test func `a refresh is launched at its earliest begin date`() async throws {
        try await TestDriver.run(permitting: ["refresh"]) { driver in
            let calls = Mutex(0)
            BGTaskScheduler.shared.register(forTaskWithIdentifier: "refresh", using: nil) { task in
                calls.withLock { $0 += 1 }
                task.setTaskCompleted(success: true)
            }
            let request = BGAppRefreshTaskRequest(identifier: "refresh")
            request.earliestBeginDate = driver.clock.date.addingTimeInterval(3_600)
            try BGTaskScheduler.shared.submit(request)

            try await driver.advance(by: .seconds(3_599))
            #expect(calls.withLock { $0 } == 0)
            #expect(driver.ledger.requests.map(\.id) == ["refresh"])

            let launch = try await driver.advanceToNextLaunch()
            #expect(launch.outcome == .completed)
            #expect(launch.startedAt == request.earliestBeginDate)
            #expect(calls.withLock { $0 } == 1)
            #expect(driver.ledger.requests.isEmpty)
        }
    }

    /// An app that uses `Date()` requests a launch at a date of the real clock. This date is far in the future of the virtual
    /// clock.
    @Test func `the error for a missing launch shows the date of the request and the clock`() async throws {
        try await TestDriver.run(permitting: ["refresh"]) { driver in
            let request = BGAppRefreshTaskRequest(identifier: "refresh")
            request.earliestBeginDate = driver.clock.date.addingTimeInterval(7_200)
            try BGTaskScheduler.shared.submit(request)
            let error = await #expect(throws: NothingIsLaunched.self) {
                try await driver.advanceToNextLaunch(within: .seconds(3_600))
            }
            let said = error?.description ?? ""
            #expect(said.contains("refresh (appRefresh, 0 failures, not before 2025-06-10T10:00:00Z)"), "\(said)")
            #expect(said.contains("the clock shows 2025-06-10T09:00:00Z"), "\(said)")
            #expect(said.contains("`dates: .realClock`"), "\(said)")
        }
    }

    /// Most handlers that submit the next refresh compute its date with `Date()`.
    @Test func `each step of a chain with dates of the real clock takes six hours`() async throws {
        try await TestDriver.run(permitting: ["refresh"], dates: .realClock) { driver in
            let times = Mutex<[Date]>([])
            @Sendable func submitNext() {
                let request = BGAppRefreshTaskRequest(identifier: "refresh")
                request.earliestBeginDate = Date(timeIntervalSinceNow: 6 * 3_600)
                try? BGTaskScheduler.shared.submit(request)
            }
            BGTaskScheduler.shared.register(forTaskWithIdentifier: "refresh", using: nil) { task in
                times.withLock { $0.append(driver.clock.date) }
                submitNext()
                task.setTaskCompleted(success: true)
            }
            let begin = driver.clock.date
            submitNext()
            for _ in 0..<4 { try await driver.finish(driver.advanceToNextLaunch()) }
            let moments = [begin] + times.withLock { $0 }
            let pauses = zip(moments.dropFirst(), moments).map { $0.timeIntervalSince($1) }
            #expect(pauses.count == 4 && pauses.allSatisfy { abs($0 - 6 * 3_600) < 60 }, "\(pauses)")
            // The app reads back exactly the date that it set, which is a date of the real clock.
            let pending = await BGTaskScheduler.shared.pendingTaskRequests()
            let own = try #require(pending.first?.earliestBeginDate)
            #expect(abs(own.timeIntervalSinceNow - 6 * 3_600) < 60)
            let reported = try #require(driver.ledger.requests.first?.earliestBegin)
            #expect(abs(reported.timeIntervalSince(driver.clock.date) - 6 * 3_600) < 60)
        }
    }

    private final class NoInterest: NSObject, URLSessionTaskDelegate, Sendable {}

    /// The app computes the dates of a transfer and of a notification with `Date()`. At this time, the virtual clock differs from
    /// the real clock by hours.
    @Test func `transfers and notifications with dates of the real clock keep their hours`() async throws {
        try await TestDriver.run(permitting: [], dates: .realClock) { driver in
            try await driver.advance(by: .seconds(10 * 3_600))
            driver.network.server("https://files.test").route("GET", "/a", .json("{}"))
            let session = URLSession(
                configuration: .background(withIdentifier: "files"), delegate: NoInterest(), delegateQueue: nil)
            let task = session.downloadTask(with: try #require(URL(string: "https://files.test/a")))
            let begin = Date(timeIntervalSinceNow: 2 * 3_600)
            task.earliestBeginDate = begin
            #expect(task.earliestBeginDate.map { abs($0.timeIntervalSince(begin)) < 60 } == true)
            task.resume()
            let content = UNMutableNotificationContent()
            content.title = "Open until three"
            content.expirationDate = Date(timeIntervalSinceNow: 3 * 3_600)
            try await UNUserNotificationCenter.current().add(
                UNNotificationRequest(identifier: "open", content: content, trigger: nil))
            try await driver.advance(by: .seconds(2 * 3_600 - 120))
            #expect(driver.network.server("https://files.test").requests().isEmpty)
            #expect(driver.notifications.shown.map(\.identifier) == ["open"])
            try await driver.advance(by: .seconds(240))
            #expect(driver.network.server("https://files.test").requests().count == 1)
            try await driver.advance(by: .seconds(3_600))
            #expect(driver.notifications.shown.isEmpty)
        }
    }

    @Test func `the handler of the nearest wildcard serves an identifier`() async throws {
        try await TestDriver.run(permitting: ["app.*"]) { driver in
            let served = Mutex<[String]>([])
            func register(_ identifier: String) -> Bool {
                BGTaskScheduler.shared.register(forTaskWithIdentifier: identifier, using: nil) { task in
                    served.withLock { $0.append("\(identifier) \(task.identifier)") }
                    task.setTaskCompleted(success: true)
                }
            }
            #expect(register("app.*") && register("app.export.*") && register("app.export.7"))
            #expect(!register("other.*"))
            for identifier in ["app.export.7", "app.export.8", "app.clean"] {
                try BGTaskScheduler.shared.submit(BGProcessingTaskRequest(identifier: identifier))
            }
            try await driver.advance(by: .seconds(60))
            #expect(
                served.withLock { $0.sorted() } == [
                    "app.* app.clean", "app.export.* app.export.8", "app.export.7 app.export.7",
                ])
            #expect(throws: BGTaskScheduler.Error.self) {
                try BGTaskScheduler.shared.submit(BGProcessingTaskRequest(identifier: "app.*"))
            }
        }
    }

    @Test func `an app sees the power saver while an agent is running`() async throws {
        try await TestDriver.run(permitting: ["refresh"]) { driver in
            #expect(!ProcessInfo.processInfo.isLowPowerModeEnabled, "nobody watches")
            // While a request is pending, an agent is running.
            let request = BGAppRefreshTaskRequest(identifier: "refresh")
            request.earliestBeginDate = driver.clock.date.addingTimeInterval(7_200)
            try BGTaskScheduler.shared.submit(request)
            try await driver.settle()
            #expect(!ProcessInfo.processInfo.isLowPowerModeEnabled)
            try await driver.setConditions { $0.isLowPowerMode = true }
            #expect(ProcessInfo.processInfo.isLowPowerModeEnabled)
        }
    }

    /// In seven files of a collection of real apps, the handler submits the next refresh without a date.
    @Test func `a refresh that submits itself without a date is launched with growing pauses`() async throws {
        try await TestDriver.run(permitting: ["refresh"]) { driver in
            let times = Mutex<[Date]>([])
            BGTaskScheduler.shared.register(forTaskWithIdentifier: "refresh", using: nil) { task in
                times.withLock { $0.append(driver.clock.date) }
                try? BGTaskScheduler.shared.submit(BGAppRefreshTaskRequest(identifier: "refresh"))
                task.setTaskCompleted(success: true)
            }
            try BGTaskScheduler.shared.submit(BGAppRefreshTaskRequest(identifier: "refresh"))
            try await driver.advance(by: .seconds(4 * 3_600))
            let launches = times.withLock { $0 }
            let pauses = zip(launches.dropFirst(), launches).map { Int($0.timeIntervalSince($1).rounded()) }
            #expect(pauses == [300, 600, 1_200, 2_400, 3_600, 3_600])
            // A request that the app submits outside a launch begins immediately.
            try BGTaskScheduler.shared.submit(BGAppRefreshTaskRequest(identifier: "refresh"))
            try await driver.advance(by: .seconds(5))
            #expect(times.withLock { $0.count } == launches.count + 1)
        }
    }

    @Test func `a daily check runs at noon on each day of a year`() async throws {
        let noons = try await YearOfNoons.play().noons
        #expect(noons.count == 365)
        var calendar = Calendar(identifier: .gregorian)
        calendar.timeZone = try #require(TimeZone(identifier: "Europe/Berlin"))
        #expect(noons.allSatisfy { calendar.dateComponents([.hour, .minute], from: $0) == DateComponents(hour: 12, minute: 0) })
    }

    @Test func `the expiration handler is called when a launch reaches its time limit`() async throws {
        try await TestDriver.run(permitting: ["refresh"]) { driver in
            BGTaskScheduler.shared.register(forTaskWithIdentifier: "refresh", using: nil) { task in
                let work = Task { try await driver.clock.sleep(for: .seconds(600)) }
                task.expirationHandler = {
                    work.cancel()
                    task.setTaskCompleted(success: false)
                }
            }
            try BGTaskScheduler.shared.submit(BGAppRefreshTaskRequest(identifier: "refresh"))
            let launch = try await driver.advanceToNextLaunch()
            #expect(launch.outcome == nil)
            let ended = try await driver.finish(launch)
            #expect(ended.outcome == .expired)
            #expect(ended.stopReason == .expired)
            #expect(try #require(ended.endedAt).timeIntervalSince(ended.startedAt) >= 30)
        }
    }

    @Test func `a handler that ignores its expiration is killed and launched again`() async throws {
        try await TestDriver.run(permitting: ["refresh"]) { driver in
            await driver.setPatience(.milliseconds(50))
            let calls = Mutex(0)
            BGTaskScheduler.shared.register(forTaskWithIdentifier: "refresh", using: nil) { task in
                let number = calls.withLock { calls in
                    calls += 1
                    return calls
                }
                // In the first call, the handler never completes its task.
                task.expirationHandler = {}
                if number > 1 { task.setTaskCompleted(success: true) }
            }
            try BGTaskScheduler.shared.submit(BGAppRefreshTaskRequest(identifier: "refresh"))
            let first = try await driver.finish(driver.advanceToNextLaunch())
            #expect(first.outcome == .killed)
            await driver.setPatience(.seconds(5))
            let second = try await driver.advanceToNextLaunch()
            #expect(second.outcome == .completed)
            #expect(second.generation == 2)
        }
    }

    @Test func `a check hands over its download when its time is used up`() async throws {
        let app = WeatherApp.Log()
        try await TestDriver.run(permitting: ["noon"]) { driver in
            try await WeatherApp.$log.withValue(app) {
                await driver.adopt(WeatherApp.self)
                driver.network.server("https://weather.test").route(
                    "GET", "/forecast", .dripping("{\"storm\":true}", seconds: 45))
                try BGTaskScheduler.shared.submit(BGAppRefreshTaskRequest(identifier: "noon"))

                let check = try await driver.advanceToNextLaunch()
                #expect(check.outcome == nil)
                let expired = try await driver.finish(check)
                #expect(expired.outcome == .expired)
                #expect(driver.ledger.transfers.first?.isHandedOver == true)

                let delivery = try await driver.finish(driver.advanceToNextLaunch())
                #expect(delivery.kind == .urlSession)
                #expect(delivery.outcome == .completed)
            }
            // The check and the delivery together send only one request to the server.
            #expect(driver.network.server("https://weather.test").requests().count == 1)
            #expect(driver.notifications.shown.map(\.title) == ["Storm"])
        }
    }

    @Test func `a download from an unknown server fails the test`() async throws {
        let error = await #expect(throws: UnimplementedEffects.self) {
            try await TestDriver.run(permitting: []) { driver in
                let session = URLSession(configuration: .background(withIdentifier: "x"))
                session.downloadTask(with: URL(string: "https://nowhere.test/file")!).resume()
                try await driver.settle()
                try await driver.advance(by: .seconds(1))
            }
        }
        #expect(error?.effects.first?.contains("https://nowhere.test/file") == true)
    }
}

private struct WeatherApp: App {
    final class Log: Sendable {}
    @TaskLocal static var log: Log?

    var body: some Scene {
        Worker()
            .backgroundTask(.appRefresh("noon")) { await Self.check() }
            .backgroundTask(.urlSession("weather")) { await Self.deliver() }
    }

    nonisolated private static let request = URLRequest(url: URL(string: "https://weather.test/forecast")!)

    static func check() async {
        let session = URLSession(configuration: .background(withIdentifier: "weather"))
        let data = await withTaskCancellationHandler {
            try? await session.data(for: request).0
        } onCancel: {
            session.downloadTask(with: request).resume()
        }
        if data != nil { await tell() }
    }

    static func deliver() async { await tell() }

    static func tell() async {
        let content = UNMutableNotificationContent()
        content.title = "Storm"
        try? await UNUserNotificationCenter.current().add(
            UNNotificationRequest(identifier: "storm", content: content, trigger: nil))
    }
}
