import ProcessSupport
@testable import BackgroundLedger
import BackgroundRuntime
import BackgroundTasks
import BackgroundTasksTesting
import BackgroundTransfer
import FaultyServer
import Foundation
import Synchronization
import Testing
import UserNotifications

/// The tutorial contains a table of the events that a test can cause. These tests check each row of the tutorial's table.
@Suite(.timeLimit(.minutes(30))) struct EveryOtherEndTests {
    /// Runs a driver with the handlers "work" and "refresh". Each handler takes two virtual minutes, and stops when its task
    /// expires.
    private func run(_ body: @escaping @Sendable (TestDriver) async throws -> Void) async throws {
        try await TestDriver.run(permitting: ["work", "refresh", "job.*"]) { driver in
            for identifier in ["work", "refresh"] {
                BGTaskScheduler.shared.register(forTaskWithIdentifier: identifier, using: nil) { task in
                    let work = Task {
                        do {
                            try await driver.clock.sleep(for: .seconds(120))
                            task.setTaskCompleted(success: true)
                        } catch {
                            task.setTaskCompleted(success: false)
                        }
                    }
                    task.expirationHandler = { work.cancel() }
                }
            }
            try await body(driver)
        }
    }

    private func submitWork(_ change: (BGProcessingTaskRequest) -> Void = { _ in }) throws {
        let request = BGProcessingTaskRequest(identifier: "work")
        change(request)
        try BGTaskScheduler.shared.submit(request)
    }

    private func submitRefresh(after seconds: Double, of driver: TestDriver) throws {
        let request = BGAppRefreshTaskRequest(identifier: "refresh")
        request.earliestBeginDate = driver.clock.date.addingTimeInterval(seconds)
        try BGTaskScheduler.shared.submit(request)
    }

    private final class Seen: Sendable {
        let answers = Mutex<[String]>([])
        let inside = Mutex((now: 0, most: 0))
    }

    // MARK: Manual launches, and their ends

    @Test func `a manual launch is marked as simulated`() async throws {
        try await run { driver in
            try submitWork { $0.earliestBeginDate = driver.clock.date.addingTimeInterval(86_400) }
            let launch = try await driver.simulateLaunch("work")
            #expect(launch.isSimulated && launch.outcome == nil)
            #expect(try await driver.finish(launch).outcome == .completed)
            await #expect(throws: TestDriver.Refused.self) { try await driver.simulateLaunch("nobody") }
        }
    }

    @Test func `a test can end the time of a launch`() async throws {
        try await run { driver in
            try submitWork()
            _ = try await driver.advanceToNextLaunch()
            let ended = try await driver.simulateExpiration(of: "work", after: .seconds(10))
            #expect(ended.outcome == .expired && ended.stopReason == .simulated)
            #expect(try #require(ended.endedAt).timeIntervalSince(ended.startedAt) == 10)
            await #expect(throws: TestDriver.Refused.self) { try await driver.simulateExpiration() }
        }
    }

    @Test func `a launch stops when the agent quits`() async throws {
        try await run { driver in
            try submitWork()
            _ = try await driver.advanceToNextLaunch()
            let ended = try await driver.stop(reason: .quit)
            #expect(ended.outcome == .expired && ended.stopReason == .quit)
        }
    }

    @Test func `a launch stops when its condition is lost`() async throws {
        try await run { driver in
            try submitWork { $0.requiresNetworkConnectivity = true }
            _ = try await driver.advanceToNextLaunch()
            let ended = try await driver.stop(reason: .conditionLost)
            #expect(ended.outcome == .expired && ended.stopReason == .conditionLost)
            // The condition is lost until the test restores it.
            try submitWork { $0.requiresNetworkConnectivity = true }
            await #expect(throws: NothingIsLaunched.self) { try await driver.advanceToNextLaunch() }
            try await driver.setConditions { ($0.isNetworkAvailable, $0.isOnExternalPower) = (true, true) }
            #expect(try await driver.advanceToNextLaunch().identifier == "work")
        }
    }

    /// If the launch did not end for the given reason, `stop` throws an error.
    @Test func `a launch without requirements is not stopped by a lost condition`() async throws {
        try await run { driver in
            try submitWork()
            _ = try await driver.advanceToNextLaunch()
            let error = await #expect(throws: TestDriver.Refused.self) { try await driver.stop(reason: .conditionLost) }
            #expect(error?.answer == "work was not stopped; it ended as completed, not for the reason conditionLost")
        }
    }

    @Test func `a launch stops when its budget is used up`() async throws {
        try await run { driver in
            try submitRefresh(after: 0, of: driver)
            _ = try await driver.advanceToNextLaunch()
            #expect(try await driver.stop(reason: .expired).stopReason == .expired)
        }
    }

    @Test(arguments: [StopReason.cancelled, .noProgress])
    func `continued processing is stopped for the given reason`(_ reason: StopReason) async throws {
        try await run { driver in
            let seen = Seen()
            let (begun, begin) = AsyncStream.makeStream(of: Void.self)
            BGTaskScheduler.shared.register(forTaskWithIdentifier: "job.1", using: nil) { task in
                task.expirationHandler = {
                    seen.answers.withLock { $0.append("told to stop") }
                    task.setTaskCompleted(success: false)
                }
                begin.finish()
            }
            try BGTaskScheduler.shared.submit(BGContinuedProcessingTaskRequest(identifier: "job.1", title: "T", subtitle: "S"))
            _ = try await driver.advanceToNextLaunch()
            // The handler runs on another queue of this process. The handler sets its expiration handler before it finishes the
            // stream.
            for await _ in begun {}
            await #expect(throws: TestDriver.Refused.self) { try await driver.killApp() }
            let ended = try await driver.stop(reason: reason)
            #expect(ended.stopReason == reason && ended.outcome == .expired)
            #expect(seen.answers.withLock { $0 } == ["told to stop"])
        }
    }

    @Test func `a killed app is launched again`() async throws {
        try await run { driver in
            try submitWork()
            _ = try await driver.advanceToNextLaunch()
            #expect(try await driver.killApp().outcome == .crashed)
            let second = try await driver.advanceToNextLaunch()
            #expect(second.generation == 2)
            #expect(try await driver.finish(second).outcome == .completed)
        }
    }

    @Test func `a killed agent launches nothing until it is started again`() async throws {
        try await run { driver in
            try submitRefresh(after: 3_600, of: driver)
            try await driver.settle()
            await driver.killAgent()
            try await driver.advance(by: .seconds(7_200))
            #expect(driver.ledger.history.isEmpty)
            try await driver.startAgent()
            #expect(driver.ledger.running.map(\.identifier) == ["refresh"])
        }
    }

    @Test func `a launch that does not end in time is an error`() async throws {
        try await run { driver in
            try submitWork()
            let launch = try await driver.advanceToNextLaunch()
            let error = await #expect(throws: StillRunning.self) { try await driver.finish(launch, within: .seconds(60)) }
            #expect(error?.launch.id == launch.id)
        }
    }

    // MARK: The machine

    @Test func `a request waits for network and power`() async throws {
        try await run { driver in
            try await driver.setConditions { ($0.isNetworkAvailable, $0.isOnExternalPower) = (false, false) }
            try submitWork { ($0.requiresNetworkConnectivity, $0.requiresExternalPower) = (true, true) }
            try await driver.setConditions { $0.isNetworkAvailable = true }
            let error = await #expect(throws: NothingIsLaunched.self) { try await driver.advanceToNextLaunch() }
            #expect(
                error?.description.contains("work (processing, 0 failures); network available, external power not connected")
                    == true)
            try await driver.setConditions { $0.isOnExternalPower = true }
            #expect(driver.ledger.running.map(\.identifier) == ["work"])
        }
    }

    @Test func `a request that is due during sleep is launched at the wake-up`() async throws {
        try await run { driver in
            let start = driver.clock.date
            try submitRefresh(after: 3_600, of: driver)
            try await driver.suspend(for: .seconds(7_200))
            #expect(driver.ledger.running.first?.startedAt == start.addingTimeInterval(7_200))
        }
    }

    @Test func `a request is launched at its date after the clock was set back`() async throws {
        try await run { driver in
            let (start, began) = (driver.clock.date, driver.clock.now)
            try submitRefresh(after: 3_600, of: driver)
            try await driver.stepClock(by: .seconds(-1_800))
            let launch = try await driver.advanceToNextLaunch()
            #expect(launch.startedAt == start.addingTimeInterval(3_600))
            #expect(began.duration(to: driver.clock.now) == .seconds(5_400))
        }
    }

    @Test func `a daily request is launched at noon in a new time zone`() async throws {
        try await run { driver in
            let request = BGAppRefreshTaskRequest(identifier: "refresh")
            request.recurrence = .daily(.noon)
            try BGTaskScheduler.shared.submit(request)
            let tokyo = try #require(TimeZone(identifier: "Asia/Tokyo"))
            try await driver.travel(to: tokyo)
            var calendar = Calendar(identifier: .gregorian)
            calendar.timeZone = tokyo
            let launch = try await driver.advanceToNextLaunch()
            #expect(calendar.dateComponents([.hour, .minute], from: launch.startedAt) == DateComponents(hour: 12, minute: 0))
        }
    }

    // MARK: The network

    @Test(arguments: ["cut", "away"])
    func `a download continues after a connection fault`(_ fault: String) async throws {
        try await run { driver in
            let origin = "https://files.test"
            driver.network.server(origin).route(nil, "/file", .served(ServedFile(.pattern(200_000), etag: "\"v1\"")))
            driver.network.bytesPerSecond = 10_000
            let session = URLSession(configuration: .background(withIdentifier: fault))
            session.downloadTask(with: URL(string: origin + "/file")!).resume()
            try await driver.advance(by: .seconds(5))
            if fault == "cut" {
                driver.network.cutConnections()
            } else {
                driver.network.takeAway(origin)
                try await driver.advance(by: .seconds(30))
                #expect(driver.ledger.transfers.first?.state == .waiting)
                driver.network.comeBack(origin)
            }
            try await driver.advance(by: .seconds(600))
            let transfer = try #require(driver.ledger.transfers.first)
            #expect(transfer.state == .completed && transfer.bytesDone == 200_000 && transfer.attempts > 1)
            #expect(driver.network.server(origin).requests().last?.headers["Range"] != nil)
        }
    }

    /// If a handler uses an ordinary session, the virtual servers respond to this session in virtual time.
    @Test func `an ordinary request is answered in virtual time`() async throws {
        let seen = Seen()
        try await TestDriver.run(permitting: ["ask"]) { driver in
            driver.network.server("https://api.test").route("GET", "/slow", .dripping("hello", seconds: 20))
            BGTaskScheduler.shared.register(forTaskWithIdentifier: "ask", using: nil) { task in
                Task {
                    let data = try? await URLSession.shared.data(from: URL(string: "https://api.test/slow")!).0
                    seen.answers.withLock { $0.append(data.map { String(decoding: $0, as: UTF8.self) } ?? "none") }
                    task.setTaskCompleted(success: data != nil)
                }
            }
            try BGTaskScheduler.shared.submit(BGAppRefreshTaskRequest(identifier: "ask"))
            let launch = try await driver.finish(driver.advanceToNextLaunch())
            #expect(launch.outcome == .completed)
            #expect(try #require(launch.endedAt).timeIntervalSince(launch.startedAt) >= 15)
            // The test itself sends an ordinary request.
            async let own = URLSession.shared.data(from: URL(string: "https://api.test/slow")!).0
            while driver.network.server("https://api.test").requests().count < 2 { try await driver.advance(by: .seconds(1)) }
            try await driver.advance(by: .seconds(30))
            #expect(try await own == Data("hello".utf8))
        }
        #expect(seen.answers.withLock { $0 } == ["hello"])
    }

    @Test func `an ordinary request to an unknown server fails the test`() async throws {
        struct Own: Error {}
        let error = await #expect(throws: UnimplementedEffects.self) {
            try await TestDriver.run(permitting: ["ask"]) { driver in
                BGTaskScheduler.shared.register(forTaskWithIdentifier: "ask", using: nil) { task in
                    Task {
                        let data = try? await URLSession.shared.data(from: URL(string: "https://nowhere.test/")!)
                        task.setTaskCompleted(success: data != nil)
                    }
                }
                try BGTaskScheduler.shared.submit(BGAppRefreshTaskRequest(identifier: "ask"))
                _ = try await driver.finish(driver.advanceToNextLaunch())
                // A failed `#require` throws an error like this error.
                throw Own()
            }
        }
        #expect(error?.effects == ["GET https://nowhere.test/: no virtual server was created for https://nowhere.test:443"])
        #expect(error?.underlying is Own)
    }

    /// Another test of this process uses a server on loopback. The driver does not affect this test.
    @Test func `work outside the test reaches loopback`() async throws {
        let server = try await FaultyServer.start()
        server.route("GET", "/own", .status(200, body: "own"))
        let url = try #require(URL(string: server.url + "/own"))
        try await run { _ in
            let answer = try await Task.detached { try await URLSession.shared.data(from: url).0 }.value
            #expect(answer == Data("own".utf8))
        }
        await server.stop()
    }

    // MARK: Notifications

    @Test func `a notification is shown when its server appears, and its button is delivered`() async throws {
        let heard = ReceivedEvents()
        try await run { driver in
            let center = UNUserNotificationCenter.current()
            center.delegate = heard
            center.setNotificationCategories([
                UNNotificationCategory(
                    identifier: "storm", actions: [UNNotificationAction(identifier: "photo", title: "Photo")],
                    intentIdentifiers: [])
            ])
            let content = UNMutableNotificationContent()
            (content.title, content.categoryIdentifier) = ("Storm", "storm")
            driver.notifications.vanish()
            try await center.add(UNNotificationRequest(identifier: "storm", content: content, trigger: nil))
            try await driver.advance(by: .seconds(60))
            #expect(driver.notifications.shown.isEmpty)
            driver.notifications.appear()
            try await driver.advance(by: .seconds(1))
            #expect(driver.notifications.shown.map(\.title) == ["Storm"])
            #expect(driver.notifications.press("photo", on: "storm"))
            try await driver.advance(by: .seconds(60))
        }
        #expect(heard.actions.withLock { $0 } == ["photo"])
    }

    private final class ReceivedEvents: NSObject, UNUserNotificationCenterDelegate, Sendable {
        let actions = Mutex<[String]>([])

        func userNotificationCenter(_ center: UNUserNotificationCenter, didReceive response: UNNotificationResponse) async {
            let action = response.actionIdentifier
            actions.withLock { $0.append(action) }
        }
    }

    /// For example, a wrapper script forks and exits. The remaining process begins to run after the launch has ended, and perhaps
    /// after the launch was repeated.
    @Test func `a process of a launch that has ended runs no handler`() async throws {
        let seen = Seen()
        try await TestDriver.run(permitting: ["refresh"]) { driver in
            BGTaskScheduler.shared.register(forTaskWithIdentifier: "refresh", using: nil) { task in
                seen.answers.withLock { $0.append("runs") }
                task.setTaskCompleted(success: true)
            }
            try submitRefresh(after: 0, of: driver)
            let launch = try await driver.finish(driver.advanceToNextLaunch())
            let late = LaunchContext(
                id: launch.id, runtime: .shared, identity: ProcessIdentity(pid: 5_999_999, start: 1),
                leave: { code in seen.answers.withLock { $0.append("leaves with \(code)") } })
            await LaunchContext.$own.withValue(late) { LaunchHandlers.shared.run(late) }?.value
            #expect(driver.ledger.history == [launch])
        }
        #expect(seen.answers.withLock { $0 } == ["runs", "leaves with 74"])
    }

    // MARK: The driver

    @Test func `launches are reported when they begin and when they end`() async throws {
        try await run { driver in
            try submitWork()
            _ = try await driver.finish(driver.advanceToNextLaunch())
            var seen: [String] = []
            for await launch in driver.launches {
                seen.append(launch.outcome?.rawValue ?? "begins")
                if launch.outcome != nil { break }
            }
            #expect(seen == ["begins", "completed"])
        }
    }

    @Test func `drivers run one after another on separate machines`() async throws {
        let seen = Seen()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<4 {
                group.addTask {
                    try await run { driver in
                        seen.inside.withLock { $0 = ($0.now + 1, max($0.most, $0.now + 1)) }
                        try submitWork()
                        #expect(try await driver.finish(driver.advanceToNextLaunch()).id == 1)
                        seen.inside.withLock { $0.now -= 1 }
                    }
                }
            }
            try await group.waitForAll()
        }
        #expect(seen.inside.withLock { $0.most } == 1)
    }

    @Test func `a driver within another driver is refused`() async throws {
        try await run { _ in
            await #expect(throws: NestedRun.self) { try await TestDriver.run(permitting: []) { _ in } }
        }
    }
}
