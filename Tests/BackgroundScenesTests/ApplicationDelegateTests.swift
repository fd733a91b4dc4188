import BackgroundTasksTesting
import ServerScripts
import Synchronization
import Testing

@testable import BackgroundScenes

extension OneEnvironment {
    /// Tests of the calls that a delegate receives, and of their order.
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

        @Test func `a manual start calls the delegate methods in order`() async throws {
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

        @Test func `a process with an empty delegate finishes and exits`() async throws {
            try await TestDriver.run(permitting: []) { _ in
                await AppProcess.begin(Silent()).serveThePerson()
            }
        }

        /// A delegate that asks its server which photo to upload, and begins the upload when the response arrives.
        private final class Asking: ApplicationDelegate {
            private let isAwaiting: Bool

            init() { isAwaiting = false }
            init(isAwaiting: Bool) { self.isAwaiting = isAwaiting }

            func applicationDidFinishLaunching() {
                let list = URL(string: "https://api.test/list")!
                if isAwaiting {
                    Task {
                        _ = try await URLSession(configuration: .background(withIdentifier: "lists")).data(from: list)
                        Self.upload()
                    }
                } else {
                    var request = URLRequest(url: list)
                    request.timeoutInterval = 80_000
                    URLSession.shared.dataTask(with: request) { _, _, _ in Self.upload() }.resume()
                }
            }

            nonisolated private static func upload() {
                let session = URLSession(configuration: .background(withIdentifier: "photos"))
                var request = URLRequest(url: URL(string: "https://api.test/photo")!)
                request.httpMethod = "PUT"
                session.uploadTask(with: request, from: Data("photo".utf8)).resume()
            }
        }

        /// Lets virtual time pass until the process exits.
        private func leave(_ process: AppProcess, _ driver: TestDriver) async throws {
            let hasLeft = Flag()
            let end = Task {
                await process.serveThePerson()
                hasLeft.value.withLock { $0 = true }
            }
            while !hasLeft.value.withLock({ $0 }) { try await driver.advance(by: .seconds(5)) }
            await end.value
        }

        private final class Flag: Sendable { let value = Mutex(false) }

        @Test(arguments: [false, true])
        func `a process that a user started runs until the response to its request is handled`(_ isAwaiting: Bool) async throws {
            try await TestDriver.run(permitting: []) { driver in
                let server = driver.network.server("https://api.test")
                // The limit is 30 s of virtual time, which can pass while other programs delay the thread of the app.
                server.route("GET", "/list", .status(200, body: .text("photo")).after(.delay(1)))
                server.route("PUT", "/photo", .status(201).after(.delay(3_600)))
                try await leave(await AppProcess.begin(Asking(isAwaiting: isAwaiting)), driver)
                #expect(driver.ledger.transfers.map(\.isUpload).contains(true))
            }
        }

        /// The app waits for a response of its server before it begins an upload.
        @Test func `a process does not wait without a limit for a response`() async throws {
            try await TestDriver.run(permitting: []) { driver in
                driver.network.server("https://api.test").route("GET", "/list", .status(200).after(.delay(80_000)))
                try await leave(await AppProcess.begin(Asking()), driver)
                #expect(driver.ledger.transfers.isEmpty)
            }
        }

        @Test func `a process of an app without continuation does not wait for requests`() async throws {
            try await TestDriver.run(permitting: []) { driver in
                driver.network.server("https://api.test").route("GET", "/list", .status(200).after(.delay(3_600)))
                var settings = BackgroundSettings()
                settings.continuation = 0
                try settings.apply()
                await AppProcess.begin(Asking()).serveThePerson()
            }
        }

        @Test func `a second delegate adaptor traps`() async {
            let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
                await MainActor.run { _ = MountingTwo() }
            }
            let said = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
            #expect(said.contains("an app can have only one delegate"))
        }

        /// The sample registers its handler at the end of launching. The agent launches the sample first for the refresh, and
        /// then for the events of the session.
        @Test func `the sample app is launched for its task and for its session`() async throws {
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
                // The app was never in the foreground, so only the handler has scheduled a request.
                #expect(driver.ledger.requests.map(\.id) == ["refresh"])
            }
        }
    }
}
