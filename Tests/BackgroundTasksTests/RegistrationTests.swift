import Foundation
import Testing

@testable import BackgroundTasks

/// Apple raises an exception that Swift cannot catch; here the process ends with a message. Each in a process of its own.
@Suite struct RegistrationTests {
    private static func permit(_ identifiers: String...) throws {
        let manifest: [String: Any] = [
            "CFBundleIdentifier": "registration-tests", "BGTaskSchedulerPermittedIdentifiers": identifiers,
        ]
        try AppManifest.use(
            propertyList: PropertyListSerialization.data(fromPropertyList: manifest, format: .xml, options: 0))
    }

    @Test func registeringTwiceTraps() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            try Self.permit("a")
            #expect(BGTaskScheduler.shared.register(forTaskWithIdentifier: "a", using: nil) { _ in })
            BGTaskScheduler.shared.register(forTaskWithIdentifier: "a", using: nil) { _ in }
        }
        let said = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
        #expect(said.contains("a launch handler for a is already registered"))
    }

    @Test func registeringAfterRunTraps() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            try Self.permit("a")
            BGTaskScheduler.shared.run()
            BGTaskScheduler.shared.register(forTaskWithIdentifier: "a", using: nil) { _ in }
        }
        let said = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
        #expect(said.contains("all launch handlers must be registered before run()"))
    }

    /// Continued processing is registered at the moment of use.
    @Test func whatAWildcardPermitsIsRegisteredLate() async {
        await #expect(processExitsWith: .success) {
            try Self.permit("a.*")
            BGTaskScheduler.shared.run()
            #expect(BGTaskScheduler.shared.register(forTaskWithIdentifier: "a.1", using: nil) { _ in })
            #expect(!BGTaskScheduler.shared.register(forTaskWithIdentifier: "a.*", using: nil) { _ in })
            #expect(!BGTaskScheduler.shared.register(forTaskWithIdentifier: "b", using: nil) { _ in })
        }
    }

    @Test func anAbstractRequestTraps() async {
        await #expect(processExitsWith: .failure) {
            try Self.permit("a")
            try BGTaskScheduler.shared.submit(BGTaskRequest(identifier: "a"))
        }
    }
}
