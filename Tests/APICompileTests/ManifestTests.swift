import BackgroundTasks
import Foundation
import Testing
import UserNotifications

@Suite struct ManifestTests {
    private func manifest(_ permitted: [String]) -> AppManifest {
        AppManifest(appIdentifier: "a", displayName: "A", version: "1", permittedIdentifiers: permitted)
    }

    @Test func `a manifest permits only listed identifiers`() {
        let manifest = manifest(["a.refresh", "a.export.*"])
        #expect(manifest.permits("a.refresh"))
        #expect(!manifest.permits("a.refresh.more"))
        #expect(manifest.permits("a.export.1"))
        #expect(!manifest.permits("a.export."))
        #expect(!manifest.permits("a.export"))
        #expect(!manifest.permits(""))
    }

    @Test(arguments: ["", ".", "..", "a/b", "a b", "ä", String(repeating: "a", count: 65)])
    func `an app identifier that is not a valid folder name is refused`(_ identifier: String) throws {
        let plist = try PropertyListSerialization.data(
            fromPropertyList: ["CFBundleIdentifier": identifier], format: .xml, options: 0)
        #expect(throws: AppManifest.Failure.badIdentifier(identifier)) { try AppManifest(propertyList: plist) }
    }

    @Test func `the variables that launches inherit must be an array of strings`() throws {
        func read(_ value: Any) throws -> [String]? {
            let list: [String: Any] = ["CFBundleIdentifier": "a", "BackgroundLaunchEnvironment": value]
            let plist = try PropertyListSerialization.data(fromPropertyList: list, format: .xml, options: 0)
            return try AppManifest(propertyList: plist).launchVariables
        }
        #expect(try read(["A_URL", "B_*"]) == ["A_URL", "B_*"])
        #expect(throws: AppManifest.Failure.badLaunchVariables("Info.plist")) { try read("A_URL") }
    }

    @Test func `data that is not a property list is refused`() {
        #expect(throws: AppManifest.Failure.self) { try AppManifest(propertyList: Data("{".utf8)) }
    }

    @Test func `an identifier that is not listed is neither registered nor submitted`() {
        #expect(!BGTaskScheduler.shared.register(forTaskWithIdentifier: "nobody.listed.this", using: nil) { _ in })
        #expect(throws: BGTaskScheduler.Error(.notPermitted)) {
            try BGTaskScheduler.shared.submit(BGAppRefreshTaskRequest(identifier: "nobody.listed.this"))
        }
    }

    @Test func `error codes have the numbers of Apple`() {
        let codes: [BGTaskScheduler.Error.Code] = [
            .unavailable, .tooManyPendingTaskRequests, .notPermitted, .immediateRunIneligible,
        ]
        #expect(codes.map(\.rawValue) == [1, 2, 3, 4])
        #expect((BGTaskScheduler.Error(.notPermitted) as NSError).domain == BGTaskScheduler.errorDomain)
        #expect((BGTaskScheduler.Error(.notPermitted) as NSError).code == 3)
    }
}
