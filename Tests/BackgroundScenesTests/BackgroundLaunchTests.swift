import BackgroundTasks
import BackgroundTasksTesting
import Foundation
import Testing

/// Tests of an app whose scenes are types of another GUI library. These scenes register actions for background launches.
@Suite(.timeLimit(.minutes(30))) struct BackgroundLaunchTests {
    private actor ReceivedEvents {
        var words: [String] = []

        func add(_ word: String) { words.append(word) }
    }

    @Test func `a launch runs every action of its task and no other action`() async throws {
        let heard = ReceivedEvents()
        try await TestDriver.run(permitting: ["a", "b"]) { driver in
            BackgroundLaunch.handle(.appRefresh("a")) { await heard.add("one") }
            BackgroundLaunch.handle(.appRefresh("a")) { await heard.add("two") }
            BackgroundLaunch.handle(.processing("b")) { await heard.add("another") }
            // After a manual start, `run()` returns. Actions that a GUI declares after `run()` are ignored.
            BackgroundLaunch.run()
            BackgroundLaunch.handle(.appRefresh("a")) { await heard.add("again") }
            try BGTaskScheduler.shared.submit(BGAppRefreshTaskRequest(identifier: "a"))
            let launch = try await driver.advanceToNextLaunch()
            #expect(try await driver.finish(launch).outcome == .completed)
        }
        #expect(await heard.words.sorted() == ["one", "two"])
    }
}
