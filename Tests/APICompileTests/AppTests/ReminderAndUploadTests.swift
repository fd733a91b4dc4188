import BackgroundTasksTesting
import BackgroundTransfer
import ServerScripts
import Synchronization
import Testing
import UserNotifications

/// Tests of `ReminderApp.swift`.
@Suite struct ReminderAppTests {
    private final class Handler: ReminderHandling, Sendable {
        let calls = Mutex<[String]>([])

        func complete(reminderWithIdentifier identifier: String) { calls.withLock { $0.append("complete " + identifier) } }
        func open(reminderWithIdentifier identifier: String) { calls.withLock { $0.append("open " + identifier) } }
    }

    private func reminder(_ title: String, hour: Int, _ repetition: Reminder.Repetition) -> Reminder {
        Reminder(
            id: UUID(), title: title, notes: "With water",
            date: DateComponents(year: 2025, month: 6, day: 10, hour: hour, minute: 30),
            repetition: repetition)
    }

    /// Runs a driver that begins on a Tuesday at 10:00 in the time zone of this machine. The triggers of the app use this time
    /// zone.
    private func run(_ body: @Sendable (TestDriver, ReminderScheduler, Handler) async throws -> Void) async throws {
        let start = try #require(Calendar.current.date(from: DateComponents(year: 2025, month: 6, day: 10, hour: 10)))
        try await TestDriver.run(permitting: [], start: start, zone: .current) { driver in
            let scheduler = ReminderScheduler()
            let handler = Handler()
            scheduler.handler = handler
            scheduler.setUp()
            let granted = await withCheckedContinuation { continuation in
                scheduler.requestAuthorization { continuation.resume(returning: $0) }
            }
            #expect(granted)
            try await body(driver, scheduler, handler)
        }
    }

    private func schedule(_ reminder: Reminder, _ scheduler: ReminderScheduler) async throws {
        let error = await withCheckedContinuation { continuation in
            scheduler.schedule(reminder) { continuation.resume(returning: $0) }
        }
        if let error { throw error }
    }

    @Test func `a reminder is shown at its time with its buttons`() async throws {
        try await run { driver, scheduler, handler in
            let once = reminder("Pills", hour: 12, .never)
            try await schedule(once, scheduler)
            let upcoming = await scheduler.upcoming()
            #expect(upcoming.map(\.identifier) == [once.id.uuidString])
            #expect(upcoming.first?.date == driver.clock.date.addingTimeInterval(2.5 * 3_600))
            try await driver.advance(by: .seconds(2.5 * 3_600 - 1))
            #expect(driver.notifications.shown.isEmpty)
            try await driver.advance(by: .seconds(2))
            let shown = try #require(driver.notifications.shown.first)
            #expect(shown.title == "Pills" && shown.buttons.count == 3 && shown.sound != nil)

            #expect(driver.notifications.press(ReminderScheduler.ActionIdentifier.complete.rawValue, on: once.id.uuidString))
            let launch = try await driver.finish(driver.advanceToNextLaunch())
            #expect(launch.kind == .notificationResponse && launch.outcome == .completed)
            #expect(handler.calls.withLock { $0 } == ["complete \(once.id.uuidString)"])
            #expect(await scheduler.upcoming().isEmpty)
        }
    }

    @Test func `a snoozed reminder is shown again`() async throws {
        try await run { driver, scheduler, _ in
            let once = reminder("Pills", hour: 12, .never)
            try await schedule(once, scheduler)
            try await driver.advance(by: .seconds(3 * 3_600))
            #expect(driver.notifications.press(ReminderScheduler.ActionIdentifier.snooze.rawValue, on: once.id.uuidString))
            try await driver.finish(driver.advanceToNextLaunch())
            #expect(driver.notifications.shown.isEmpty)
            #expect(await scheduler.upcoming().map(\.identifier) == [once.id.uuidString + ".snoozed"])
            try await driver.advance(by: .seconds(ReminderScheduler.snoozeInterval - 30))
            #expect(driver.notifications.shown.isEmpty)
            try await driver.advance(by: .seconds(30))
            #expect(driver.notifications.shown.map(\.identifier) == [once.id.uuidString + ".snoozed"])
            #expect(driver.notifications.shown.first?.body.contains("Snoozed") == true)
        }
    }

    @Test func `a daily reminder is shown each day until it is deleted`() async throws {
        try await run { driver, scheduler, _ in
            let daily = reminder("Pills", hour: 9, .daily)
            try await schedule(daily, scheduler)
            try await driver.advance(by: .seconds(2 * 86_400))
            #expect(driver.notifications.history.count == 2)
            #expect(driver.notifications.press(ReminderScheduler.ActionIdentifier.delete.rawValue, on: daily.id.uuidString))
            try await driver.finish(driver.advanceToNextLaunch())
            try await driver.advance(by: .seconds(2 * 86_400))
            #expect(driver.notifications.history.count == 2)
            #expect(await scheduler.upcoming().isEmpty)
        }
    }

    @Test func `a weekly reminder is shown on its day`() async throws {
        try await run { driver, scheduler, handler in
            let weekly = reminder("Bins", hour: 12, .weekly)
            try await schedule(weekly, scheduler)
            try await driver.advance(by: .seconds(15 * 86_400))
            // The reminder was shown on three Tuesdays.
            #expect(driver.notifications.history.count == 3)
            #expect(driver.notifications.press(on: weekly.id.uuidString))
            try await driver.finish(driver.advanceToNextLaunch())
            #expect(handler.calls.withLock { $0 } == ["open \(weekly.id.uuidString)"])
            scheduler.cancel(weekly)
            #expect(await scheduler.upcoming().isEmpty)
        }
    }
}

/// Tests of `UploadManagerApp.swift`.
@Suite @MainActor struct UploadManagerAppTests {
    private static let picture = Payload.pattern(300_000)

    private func run(
        _ body: @MainActor @Sendable (TestDriver, PhotoUploadManager, FormStore, URL) async throws -> Void
    ) async throws {
        try await withFolder { folder in
            let photo = folder.appendingPathComponent("IMG_0001.jpg")
            try Self.picture.data.write(to: photo)
            try await TestDriver.run(permitting: []) { driver in
                let store = FormStore(prefix: "/photos")
                driver.network.server("https://photos.test").mount(store)
                driver.network.bytesPerSecond = 30_000
                let url = try #require(URL(string: "https://photos.test/photos"))
                let manager = await PhotoUploadManager(endpoint: url, folder: folder)
                try await body(driver, manager, store, photo)
            }
        }
    }

    @Test func `the uploaded body is complete and its file is removed`() async throws {
        try await run { driver, manager, store, photo in
            var ended: [PhotoUpload] = []
            manager.onFinish = { ended.append($0) }
            let upload = try manager.upload(photo: photo, album: "Summer")
            let body = try Data(contentsOf: upload.bodyFile)
            try await driver.advance(by: .seconds(5))
            guard case .uploading(let progress) = manager.uploads[upload.id]?.state else {
                Issue.record("not uploading")
                return
            }
            #expect(progress > 0.2 && progress < 0.8)
            try await driver.advance(by: .seconds(60))
            #expect(ended.map(\.state) == [.finished(location: "/photos/1")])
            let file = try #require(store.files.first)
            #expect(store.files.count == 1 && file.field == "assetData" && file.name == "IMG_0001.jpg")
            #expect(file.contents == Self.picture.data)
            let request = try #require(driver.network.server("https://photos.test").requests().first)
            #expect(request.bodyByteCount == body.count)
            #expect(!FileManager.default.fileExists(atPath: upload.bodyFile.path))
        }
    }

    @Test func `an upload waits for its server`() async throws {
        try await run { driver, manager, store, photo in
            driver.network.takeAway("https://photos.test")
            let upload = try manager.upload(photo: photo, album: "Summer")
            try await driver.advance(by: .seconds(600))
            #expect(manager.uploads[upload.id]?.state == .uploading(0))
            driver.network.comeBack("https://photos.test")
            try await driver.advance(by: .seconds(3_600))
            #expect(manager.uploads[upload.id]?.state == .finished(location: "/photos/1"))
            #expect(store.files.map(\.contents) == [Self.picture.data])
        }
    }

    @Test(.disabled("a POST that may have acted is not sent again"))
    func `an upload continues after a broken connection`() async throws {
        try await run { driver, manager, store, photo in
            store.cutUploads(afterBytes: 100_000, method: "POST")
            let upload = try manager.upload(photo: photo, album: "Summer")
            try await driver.advance(by: .seconds(600))
            #expect(manager.uploads[upload.id]?.state == .finished(location: "/photos/1"))
            #expect(store.files.map(\.contents) == [Self.picture.data])
        }
    }

    @Test func `a refused upload fails`() async throws {
        try await run { driver, manager, store, photo in
            store.refuse(status: 413)
            let upload = try manager.upload(photo: photo, album: "Summer")
            try await driver.advance(by: .seconds(60))
            guard case .failed = manager.uploads[upload.id]?.state else {
                Issue.record("not failed")
                return
            }
            #expect(store.files.isEmpty)
            #expect(!FileManager.default.fileExists(atPath: upload.bodyFile.path))
        }
    }

    @Test func `a running upload is found again after a restart`() async throws {
        try await run { driver, manager, _, photo in
            let upload = try manager.upload(photo: photo, album: "Summer")
            try await driver.advance(by: .seconds(2))
            let url = try #require(URL(string: "https://photos.test/photos"))
            let later = PhotoUploadManager(endpoint: url)
            await later.reconnect()
            #expect(Array(later.uploads.keys) == [upload.id])
        }
    }
}
