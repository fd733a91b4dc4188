import BackgroundTasksTesting
import ServerScripts
import Synchronization
import Testing

@testable import BackgroundScenes

extension OneEnvironment {
    /// What a delegate hears, and when.
    @MainActor
    @Suite(.timeLimit(.minutes(30))) struct ApplicationDelegateTests {
        private final class Listening: ApplicationDelegate {
            var heard: [String] = []

            init() { heard.append("made") }

            func applicationDidFinishLaunching() { heard.append("launched") }
            func applicationDidEnterBackground() { heard.append("left at \(EnvironmentValues.current.scenePhase)") }
        }

        private struct Mounting: App {
            @ApplicationDelegateAdaptor(Listening.self) var delegate

            var body: some Scene {
                let delegate = delegate
                delegate.heard.append("scenes")
                return Worker { await MainActor.run { delegate.heard.append("worked") } }
            }
        }

        private struct MountingTwo: App {
            @ApplicationDelegateAdaptor(Listening.self) var one
            @ApplicationDelegateAdaptor(Listening.self) var two

            var body: some Scene { Worker() }
        }

        private final class Silent: ApplicationDelegate {}

        init() { EnvironmentValues.current = EnvironmentValues() }

        @Test func aPersonsRunTellsWhatHappens() async throws {
            try await TestDriver.run(permitting: []) { _ in
                await MainActor.run {}
                let (process, delegate) = await MainActor.run { () -> (AppProcess, Listening) in
                    var app: Mounting?
                    let process = AppProcess.begin { () -> Mounting in
                        let made = Mounting()
                        app = made
                        return made
                    }
                    return (process, app!.delegate)
                }
                #expect(await delegate.heard == ["made", "launched", "scenes"])
                await process.serveThePerson()
                #expect(await delegate.heard.filter { $0 != "scenes" } == ["made", "launched", "worked", "left at background"])
            }
        }

        @Test func oneThatSaysNothingHearsNothing() async throws {
            try await TestDriver.run(permitting: []) { _ in
                await AppProcess.begin(Silent()).serveThePerson()
            }
        }

        @Test func aSecondDelegateTraps() async {
            let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
                await MainActor.run { _ = MountingTwo() }
            }
            let said = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
            #expect(said.contains("an app has one delegate"))
        }

        /// Registered at the end of launching; woken to refresh; woken for the session, whose events it asked to be told of.
        @Test func theSampleIsWokenForItsTaskAndItsSession() async throws {
            try await TestDriver.run(permitting: ["refresh"]) { driver in
                driver.network.server("https://podcast.test").route(
                    nil, "/1.mp3", .status(200, body: .text("episode")).after(.delay(40)))
                Downloader.kept.withLock { $0 = [] }
                await driver.adopt(delegate: AppDelegate.self)
                try BGTaskScheduler.shared.submit(BGAppRefreshTaskRequest(identifier: "refresh"))
                let refresh = try await driver.advanceToNextLaunch()
                #expect(refresh.kind == .appRefresh)
                #expect(try await driver.finish(refresh).outcome == .completed)
                let session = try await driver.advanceToNextLaunch(within: .seconds(60))
                #expect(session.kind == .urlSession)
                #expect(try await driver.finish(session).outcome == .completed)
                #expect(Downloader.kept.withLock { $0.sorted() } == ["episode", "reconnected"])
                // Never in the foreground: what is scheduled is the handler's.
                #expect(driver.ledger.requests.map(\.id) == ["refresh"])
            }
        }
    }
}
