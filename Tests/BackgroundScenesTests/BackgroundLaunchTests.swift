import BackgroundTasks
import BackgroundTasksTesting
import Foundation
import Testing

/// What scenes of another library make known, in a test of such an app.
@Suite(.timeLimit(.minutes(30))) struct BackgroundLaunchTests {
    private actor Heard {
        var words: [String] = []

        func add(_ word: String) { words.append(word) }
    }

    @Test func everyActionOfTheLaunchRunsAndNoOther() async throws {
        let heard = Heard()
        try await TestDriver.run(permitting: ["a", "b"]) { driver in
            BackgroundLaunch.handle(.appRefresh("a")) { await heard.add("one") }
            BackgroundLaunch.handle(.appRefresh("a")) { await heard.add("two") }
            BackgroundLaunch.handle(.processing("b")) { await heard.add("another") }
            // A person's start comes so far; what a GUI says of its scenes later is known already.
            BackgroundLaunch.run()
            BackgroundLaunch.handle(.appRefresh("a")) { await heard.add("again") }
            try BGTaskScheduler.shared.submit(BGAppRefreshTaskRequest(identifier: "a"))
            let launch = try await driver.advanceToNextLaunch()
            #expect(try await driver.finish(launch).outcome == .completed)
        }
        #expect(await heard.words.sorted() == ["one", "two"])
    }
}
