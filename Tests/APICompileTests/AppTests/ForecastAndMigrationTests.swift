import BackgroundScenes
import BackgroundTasksTesting
import BackgroundTransfer
import ServerScripts
import Synchronization
import Testing

/// Tests of `ForecastWidgetApp.swift`.
@Suite struct ForecastWidgetAppTests {
    @Test func `each place has a session that launches the app`() async throws {
        try await TestDriver.run(permitting: [ForecastScheduler.identifier], start: .now) { driver in
            await driver.adopt(ForecastApp.self)
            let server = driver.network.server("https://forecast.test")
            server.route("GET", "/v1/berlin.json", .json(#"{"place":"berlin","high":31,"isStormy":true}"#).after(.delay(45)))
            // The first launch ends before the response arrives.
            let potsdam = ResponseScript.json(#"{"place":"potsdam","high":30,"isStormy":false}"#)
            server.route("GET", "/v1/potsdam.json", .status(503), potsdam.after(.delay(45)))
            ForecastScheduler.scheduleAppRefresh()

            let begun = try await driver.advanceToNextLaunch()
            // The handler submits the next request. This app reads the real clock, so the next request is due when this launch
            // has ended.
            #expect(driver.ledger.requests.map(\.id) == [ForecastScheduler.identifier])
            BGTaskScheduler.shared.cancel(taskRequestWithIdentifier: ForecastScheduler.identifier)
            let refresh = try await driver.finish(begun)
            #expect(refresh.kind == .appRefresh && refresh.outcome == .completed)
            // The downloads continue after the end of the launch.
            #expect(await ForecastFetcher.shared.forecasts.isEmpty)
            var launches: [LaunchReport] = []
            while launches.count < 2 { launches.append(try await driver.finish(driver.advanceToNextLaunch())) }
            #expect(launches.allSatisfy { $0.kind == .urlSession && $0.outcome == .completed })
            let names = ["berlin", "potsdam"].map { ForecastFetcher.sessionPrefix + $0 }
            #expect(launches.map(\.identifier).sorted() == names)
            #expect(await ForecastFetcher.shared.handled.sorted() == names)
            let forecasts = await ForecastFetcher.shared.forecasts
            #expect(forecasts["berlin"] == Forecast(place: "berlin", high: 31, isStormy: true))
            #expect(forecasts["potsdam"] == Forecast(place: "potsdam", high: 30, isStormy: false))
        }
    }
}

/// Tests of `MigrationApp.swift`.
@Suite @MainActor struct MigrationAppTests {
    /// Moves an album only when the test permits it.
    private final class HeldMover: AlbumMoving {
        private let mover: FolderMover
        private let begun = AsyncStream.makeStream(of: String.self)
        private let permits = AsyncStream.makeStream(of: Void.self)

        init(_ destination: URL) { mover = FolderMover(destination: destination) }

        func move(_ album: LibraryAlbum) async throws {
            begun.continuation.yield(album.name)
            for await _ in permits.stream { break }
            try Task.checkCancellation()
            try await mover.move(album)
        }

        /// Waits for the next album. If the app moves another album, the test fails, because it would otherwise wait forever.
        func expect(_ name: String) async throws {
            let next = await begun.stream.first { _ in true }
            try #require(next == name)
        }

        func releaseHold() { permits.continuation.yield() }
    }

    private func run(
        _ body: @MainActor @Sendable (TestDriver, LibraryMigrator, HeldMover, URL) async throws -> Void
    ) async throws {
        try await withFolder { folder in
            let albums = try ["Alps", "Baltic", "Crete"].map { name in
                let file = folder.appending(path: "\(name).jpg")
                try Data(name.utf8).write(to: file)
                return LibraryAlbum(name: name, files: [file])
            }
            let destination = folder.appending(path: "Library")
            try await TestDriver.run(permitting: [LibraryMigrator.identifierPrefix + ".*"]) { driver in
                let mover = HeldMover(destination)
                let migrator = await LibraryMigrator(albums: albums, mover: mover)
                try await body(driver, migrator, mover, destination)
            }
        }
    }

    private func begin(_ driver: TestDriver, _ migrator: LibraryMigrator) async throws -> LaunchReport {
        migrator.startMigration()
        let launch = try await driver.advanceToNextLaunch()
        #expect(launch.kind == .continuedProcessing)
        return launch
    }

    @Test func `the notification shows each album while it is moved`() async throws {
        try await run { driver, migrator, mover, destination in
            let launch = try await begin(driver, migrator)
            for (number, name) in ["Alps", "Baltic", "Crete"].enumerated() {
                try await mover.expect(name)
                // The text of the notification changes at most once a second.
                try await driver.advance(by: .seconds(2))
                let shown = try #require(driver.notifications.shown.last)
                #expect(shown.title.contains("Moving Your Library"))
                #expect(shown.body.contains("\(name), \(number + 1) of 3"), "\(shown.body)")
                mover.releaseHold()
            }
            #expect(try await ended(launch, driver).outcome == .completed)
            #expect(migrator.status == .finished)
            for name in ["Alps", "Baltic", "Crete"] {
                let file = destination.appending(path: "\(name)/\(name).jpg")
                #expect(try String(contentsOf: file, encoding: .utf8) == name)
            }
        }
    }

    @Test func `a cancelled migration continues at the same album`() async throws {
        try await run { driver, migrator, mover, destination in
            _ = try await begin(driver, migrator)
            try await mover.expect("Alps")
            mover.releaseHold()
            try await mover.expect("Baltic")
            try await driver.settle()
            let stopped = try await driver.stop(reason: .cancelled)
            #expect(stopped.stopReason == .cancelled && stopped.outcome == .expired)
            #expect(migrator.status == .paused(done: 1))
            #expect(!FileManager.default.fileExists(atPath: destination.appending(path: "Baltic/Baltic.jpg").path))

            let again = try await begin(driver, migrator)
            for name in ["Baltic", "Crete"] {
                try await mover.expect(name)
                mover.releaseHold()
            }
            #expect(try await ended(again, driver).outcome == .completed)
            #expect(migrator.status == .finished)
        }
    }
}
