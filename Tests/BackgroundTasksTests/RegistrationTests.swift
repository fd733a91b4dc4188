import Foundation
import Testing

@testable import BackgroundTasks

/// Tests of invalid registrations. Apple's library raises an exception that Swift cannot catch. Stormy's library ends the process
/// with a message, so each test uses a separate process.
@Suite struct RegistrationTests {
    private static func permit(_ identifiers: String...) throws {
        let manifest: [String: Any] = [
            "CFBundleIdentifier": "registration-tests", "BGTaskSchedulerPermittedIdentifiers": identifiers,
        ]
        try AppManifest.use(
            propertyList: PropertyListSerialization.data(fromPropertyList: manifest, format: .xml, options: 0))
    }

    /// Sets the home of this process to a temporary folder, and returns the folder. Only tests in separate processes call this
    /// function.
    private static func enterHome() -> URL {
        let home = FileManager.default.temporaryDirectory.appendingPathComponent("registration-" + UUID().uuidString)
        for name in ["HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME"] { setenv(name, home.path, 1) }
        setenv("REGISTRATION_TESTS_NO_AGENT", "1", 1)
        return home
    }

    @Test func `a second registration of an identifier traps`() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            try Self.permit("a")
            #expect(BGTaskScheduler.shared.register(forTaskWithIdentifier: "a", using: nil) { _ in })
            BGTaskScheduler.shared.register(forTaskWithIdentifier: "a", using: nil) { _ in }
        }
        let said = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
        #expect(said.contains("a launch handler for a is already registered"))
    }

    @Test func `a registration after run traps`() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            try Self.permit("a")
            BGTaskScheduler.shared.run()
            BGTaskScheduler.shared.register(forTaskWithIdentifier: "a", using: nil) { _ in }
        }
        let said = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
        #expect(said.contains("all launch handlers must be registered before run()"))
    }

    /// The registration must end the process even if the main function of a GUI continues. A background launch ends inside
    /// `run()`, so a handler that is registered later would never be found.
    @Test func `a registration after BackgroundLaunch run traps`() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            try Self.permit("a", "b.*")
            let home = Self.enterHome()
            defer { try? FileManager.default.removeItem(at: home) }
            BackgroundLaunch.run()
            #expect(BGTaskScheduler.shared.register(forTaskWithIdentifier: "b.1", using: nil) { _ in })
            BGTaskScheduler.shared.register(forTaskWithIdentifier: "a", using: nil) { _ in }
        }
        let said = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
        #expect(said.contains("all launch handlers must be registered before run()"))
    }

    /// A GUI evaluates its scenes again at any time, so the actions of scenes may be declared repeatedly.
    @Test func `an action that is declared again after run is ignored`() async {
        await #expect(processExitsWith: .success) {
            try Self.permit("a")
            let home = Self.enterHome()
            defer { try? FileManager.default.removeItem(at: home) }
            BackgroundLaunch.handle(.appRefresh("a")) {}
            #expect(TaskHandlers.shared.handles(.appRefresh))
            BackgroundLaunch.run()
            BackgroundLaunch.handle(.processing("a")) {}
            #expect(!TaskHandlers.shared.handles(.processing))
        }
    }

    /// Apps register the handlers of continued processing when they need them.
    @Test func `an identifier that a wildcard permits can be registered after run`() async {
        await #expect(processExitsWith: .success) {
            try Self.permit("a.*")
            BGTaskScheduler.shared.run()
            #expect(BGTaskScheduler.shared.register(forTaskWithIdentifier: "a.1", using: nil) { _ in })
            #expect(BGTaskScheduler.shared.register(forTaskWithIdentifier: "a.*", using: nil) { _ in })
            #expect(!BGTaskScheduler.shared.register(forTaskWithIdentifier: "b", using: nil) { _ in })
        }
    }

    /// The test runs in a separate process with a temporary home.
    @Test func `pending requests are copies of the submitted requests`() async {
        await #expect(processExitsWith: .success) {
            let home = Self.enterHome()
            defer { try? FileManager.default.removeItem(at: home) }
            try Self.permit("a", "b")
            let request = BGProcessingTaskRequest(identifier: "a")
            request.earliestBeginDate = Date(timeIntervalSince1970: 4_000_000_000)
            try await BGTaskScheduler.shared.submitTaskRequest(request)
            request.requiresExternalPower = true
            let first = await BGTaskScheduler.shared.pendingTaskRequests()
            let pending = try #require(first.first as? BGProcessingTaskRequest)
            #expect(first.count == 1 && pending !== request)
            #expect(!pending.requiresExternalPower, "a submitted request does not change any more")
            pending.earliestBeginDate = nil
            let again = await BGTaskScheduler.shared.pendingTaskRequests()
            #expect(again.first?.earliestBeginDate == Date(timeIntervalSince1970: 4_000_000_000))
            // The methods with a completion handler have the same effect as the methods above.
            await withCheckedContinuation { continuation in
                BGTaskScheduler.shared.submitTaskRequest(BGAppRefreshTaskRequest(identifier: "b")) { error in
                    #expect(error == nil)
                    continuation.resume()
                }
            }
            let identifiers = await withCheckedContinuation { continuation in
                BGTaskScheduler.shared.getPendingTaskRequests { continuation.resume(returning: $0.map(\.identifier)) }
            }
            #expect(identifiers.sorted() == ["a", "b"])
            BGTaskScheduler.shared.cancel(taskRequestWithIdentifier: "a")
            BGTaskScheduler.shared.cancelAllTaskRequests()
            #expect(await BGTaskScheduler.shared.pendingTaskRequests().isEmpty)
            // An invalid request is refused with Apple's error code.
            let odd = BGAppRefreshTaskRequest(identifier: "b")
            odd.recurrence = .daily(.noon)
            odd.recurrenceDelay = .infinity
            do {
                try BGTaskScheduler.shared.submit(odd)
                Issue.record("accepted")
            } catch BGTaskScheduler.Error.unavailable {
            } catch { Issue.record(error) }
        }
    }

    @Test func `submitting a request of the abstract base class traps`() async {
        await #expect(processExitsWith: .failure) {
            try Self.permit("a")
            try BGTaskScheduler.shared.submit(BGTaskRequest(identifier: "a"))
        }
    }
}
