import BackgroundTasks
import BackgroundTasksTesting
import BackgroundTransfer
import ServerScripts
import Synchronization
import Testing

/// Tests of `FeedReaderApp.swift`. The tests are written as the author of the app would write them.
@Suite struct FeedReaderAppTests {
    private static let feed = """
        [{"id": 2, "title": "Two", "timestamp": "2026-01-02T00:00:00Z"},
         {"id": 1, "title": "One", "timestamp": "2020-01-01T00:00:00Z"}]
        """

    // The app reads `Date()`, so the virtual clock begins at the real time.
    private func run(_ body: @Sendable (TestDriver, FeedAppDelegate, VirtualServer) async throws -> Void) async throws {
        try await TestDriver.run(
            permitting: [FeedAppDelegate.refreshIdentifier, FeedAppDelegate.cleanIdentifier], start: .now
        ) { driver in
            let url = try #require(URL(string: "https://feed.test/entries.json"))
            let app = FeedAppDelegate(serverURL: url)
            app.didFinishLaunching()
            try await body(driver, app, driver.network.server("https://feed.test"))
        }
    }

    @Test func `the feed is refreshed and the next refresh is submitted`() async throws {
        try await run { driver, app, server in
            server.route("GET", "/entries.json", .json(Self.feed))
            try await driver.setConditions { $0.isOnExternalPower = false }
            let expected = Date(timeIntervalSinceNow: 15 * 60)
            app.didEnterBackground()
            let launch = try await driver.advanceToNextLaunch()
            #expect(launch.identifier == FeedAppDelegate.refreshIdentifier)
            #expect(abs(launch.startedAt.timeIntervalSince(expected)) < 60)
            #expect(try await driver.finish(launch).outcome == .completed)
            #expect(app.store.all.map(\.title) == ["One", "Two"])
            #expect(server.requests().count == 1)
            // The next refresh is pending, and the cleaning waits for power.
            let waiting = driver.ledger.requests.map(\.id).sorted()
            #expect(waiting == [FeedAppDelegate.cleanIdentifier, FeedAppDelegate.refreshIdentifier])
        }
    }

    @Test func `a refresh without a response expires, and a later refresh succeeds`() async throws {
        try await run { driver, app, server in
            server.route("GET", "/entries.json", .silence, .json(Self.feed))
            app.scheduleAppRefresh()
            let first = try await driver.finish(driver.advanceToNextLaunch())
            #expect(first.outcome == .expired && first.stopReason == .expired)
            #expect(app.store.all.isEmpty)
            #expect(server.requests().first?.outcome == .clientClosed)
            let second = try await driver.finish(driver.advanceToNextLaunch())
            #expect(second.outcome == .completed)
            #expect(app.store.all.count == 2)
        }
    }

    @Test func `a server error fails the task`() async throws {
        try await run { driver, app, server in
            server.route("GET", "/entries.json", .status(500))
            app.scheduleAppRefresh()
            let launch = try await driver.finish(driver.advanceToNextLaunch())
            #expect(launch.outcome == .failed)
            #expect(app.store.all.isEmpty)
        }
    }

    @Test func `old entries are removed when power is available`() async throws {
        try await run { driver, app, _ in
            app.store.insert([
                FeedEntry(id: 1, title: "Old", timestamp: Date(timeIntervalSinceNow: -60 * 86_400)),
                FeedEntry(id: 2, title: "New", timestamp: Date()),
            ])
            try await driver.setConditions { $0.isOnExternalPower = false }
            app.scheduleDatabaseCleaningIfNeeded()
            try await driver.advance(by: .seconds(3_600))
            #expect(driver.ledger.history.isEmpty && app.store.all.count == 2)
            try await driver.setConditions { $0.isOnExternalPower = true }
            #expect(try await driver.finish(driver.advanceToNextLaunch()).outcome == .completed)
            #expect(app.store.all.map(\.title) == ["New"])
            #expect(app.lastCleaned != nil)
            // The app schedules the cleaning at most once a week.
            app.scheduleDatabaseCleaningIfNeeded()
            #expect(driver.ledger.requests.isEmpty)
        }
    }
}

/// Tests of `PodcastApp.swift`.
@Suite struct PodcastAppTests {
    private final class Listener: EpisodeDownloadManagerDelegate {
        let finished = Mutex<[URL]>([])
        let failed = Mutex<[String]>([])
        let offsets = Mutex<[Int64]>([])

        func downloadManager(_ manager: EpisodeDownloadManager, didFinish episode: Episode, at url: URL) {
            finished.withLock { $0.append(url) }
        }

        func downloadManager(_ manager: EpisodeDownloadManager, didFail episode: Episode, with error: Error) {
            failed.withLock { $0.append("\(error)") }
        }

        func downloadManager(_ manager: EpisodeDownloadManager, didResume episode: Episode, at offset: Int64) {
            offsets.withLock { $0.append(offset) }
        }
    }

    private let sound = Payload.pattern(400_000)

    private func run(
        _ script: ResponseScript..., body: @Sendable (TestDriver, EpisodeDownloadManager, Episode, Listener) async throws -> Void
    ) async throws {
        try await withFolder { folder in
            try await TestDriver.run(permitting: []) { driver in
                driver.network.server("https://podcast.test").route("GET", "/42.mp3", script)
                driver.network.bytesPerSecond = 20_000
                let manager = EpisodeDownloadManager(folder: folder)
                let listener = Listener()
                manager.delegate = listener
                let url = try #require(URL(string: "https://podcast.test/42.mp3"))
                try await body(driver, manager, Episode(id: "42", title: "The Answer", audioURL: url), listener)
            }
        }
    }

    @Test func `a paused download continues at its offset`() async throws {
        try await run(.file(sound, etag: "\"v1\"")) { driver, manager, episode, listener in
            manager.startDownload(episode)
            try await driver.advance(by: .seconds(10))
            let progress = try #require(manager.download(for: episode.audioURL)?.progress)
            #expect(progress > 0.2 && progress < 0.8)
            try await whileTimePasses(driver) {
                await withCheckedContinuation { continuation in manager.pauseDownload(episode) { continuation.resume() } }
            }
            #expect(manager.download(for: episode.audioURL)?.resumeData != nil)
            let server = driver.network.server("https://podcast.test")
            #expect(server.requests().count == 1)

            manager.resumeDownload(episode)
            try await driver.advance(by: .seconds(60))
            let range = try #require(server.requests().last?.headers["Range"])
            let offset = try #require(Int64(range.dropFirst("bytes=".count).dropLast()))
            #expect(offset > 60_000)
            #expect(listener.offsets.withLock { $0 } == [offset])
            let file = try #require(listener.finished.withLock { $0.first })
            #expect(try Data(contentsOf: file) == sound.data)
            #expect(listener.failed.withLock { $0 }.isEmpty)
            #expect(driver.notifications.shown.map(\.body) == ["The Answer"])
        }
    }

    @Test func `a download continues after a broken connection`() async throws {
        try await run(.cutAfter(150_000, of: sound, etag: "\"v1\""), .file(sound, etag: "\"v1\"")) {
            driver, manager, episode, listener in
            manager.startDownload(episode)
            try await driver.advance(by: .seconds(600))
            #expect(listener.finished.withLock { $0.count } == 1 && listener.failed.withLock { $0 }.isEmpty)
            #expect(driver.network.server("https://podcast.test").requests().last?.headers["Range"] == "bytes=150000-")
        }
    }

    @Test func `the error of a failed download has resume data`() async throws {
        try await run(.cutAfter(150_000, of: sound, etag: "\"v1\""), .hangUp) { driver, manager, episode, listener in
            manager.startDownload(episode)
            // Eight hours are longer than the session's `timeoutIntervalForResource`.
            try await driver.advance(by: .seconds(8 * 3_600))
            #expect(listener.failed.withLock { $0.count } == 1)
            #expect(manager.download(for: episode.audioURL)?.resumeData != nil)
            let server = driver.network.server("https://podcast.test")
            server.route("GET", "/42.mp3", .file(sound, etag: "\"v1\""))
            manager.resumeDownload(episode)
            try await driver.advance(by: .seconds(60))
            #expect(server.requests().last?.headers["Range"] == "bytes=150000-")
            let file = try #require(listener.finished.withLock { $0.first })
            #expect(try Data(contentsOf: file) == sound.data)
        }
    }

    @Test func `a cancelled download leaves no file`() async throws {
        try await run(.file(sound, etag: "\"v1\"")) { driver, manager, episode, listener in
            manager.startDownload(episode)
            try await driver.advance(by: .seconds(5))
            manager.cancelDownload(episode)
            try await driver.advance(by: .seconds(60))
            #expect(listener.finished.withLock { $0 }.isEmpty && listener.failed.withLock { $0 }.isEmpty)
            #expect(!FileManager.default.fileExists(atPath: manager.localURL(for: episode).path))
            #expect(driver.ledger.transfers.map(\.state) == [.cancelled])
        }
    }

    /// The launch for the refresh starts a download, and ends before the download. When the download has ended, the agent
    /// launches the app again.
    @Test func `the app is launched for the end of its download`() async throws {
        try await withFolder { folder in
            try await TestDriver.run(permitting: ["com.example.podcast.refresh"]) { driver in
                driver.network.server("https://podcast.test").route("GET", "/42.mp3", .file(sound).after(.delay(40)))
                let listener = Listener()
                let make: @Sendable () -> EpisodeDownloadManager = {
                    let manager = EpisodeDownloadManager(folder: folder)
                    manager.delegate = listener
                    return manager
                }
                let delegate = PodcastAppDelegate(makeManager: make)
                delegate.didFinishLaunching()
                let url = try #require(URL(string: "https://podcast.test/42.mp3"))
                BGTaskScheduler.shared.register(forTaskWithIdentifier: "com.example.podcast.refresh", using: nil) { task in
                    make().startDownload(Episode(id: "42", title: "The Answer", audioURL: url))
                    task.setTaskCompleted(success: true)
                }
                try BGTaskScheduler.shared.submit(BGAppRefreshTaskRequest(identifier: "com.example.podcast.refresh"))
                #expect(try await driver.finish(driver.advanceToNextLaunch()).outcome == .completed)
                #expect(delegate.manager == nil)
                let launch = try await driver.finish(driver.advanceToNextLaunch())
                #expect(launch.kind == .urlSession && launch.outcome == .completed)
                #expect(launch.identifier == EpisodeDownloadManager.backgroundSessionIdentifier)
                let manager = try #require(delegate.manager)
                // The completion handler was called and removed.
                #expect(manager.backgroundCompletionHandler == nil)
                let file = try #require(listener.finished.withLock { $0.first })
                #expect(try Data(contentsOf: file) == sound.data)
            }
        }
    }

    @Test func `a running download is found by its description after a restart`() async throws {
        try await run(.file(sound, etag: "\"v1\"")) { driver, manager, episode, _ in
            manager.startDownload(episode)
            try await driver.advance(by: .seconds(2))
            let later = EpisodeDownloadManager(folder: FileManager.default.temporaryDirectory)
            await later.restore()
            let found = try #require(later.download(for: episode.audioURL))
            #expect(found.episode == episode && found.isDownloading)
        }
    }
}
