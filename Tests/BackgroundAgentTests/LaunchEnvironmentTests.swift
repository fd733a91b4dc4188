import BackgroundLedger
import Foundation
import ProcessSupport
import Testing

@testable import BackgroundAgent

@Suite struct LaunchEnvironmentTests {
    private func inherited(_ names: [String], variables: [String]? = nil) -> Set<String> {
        let app = AppRecord(executable: "/bin/true", arguments: [], version: "1", displayName: "App", variables: variables)
        let environment = Dictionary(uniqueKeysWithValues: names.map { ($0, "1") })
        let directories = AppDirectories(appIdentifier: "org.example.app", environment: ["HOME": "/home/me"])
        return Set(LaunchEnvironment.inherited(environment, by: app, in: directories).keys)
    }

    @Test func `a launch inherits the variables of the user, the desktop and the agent`() {
        let names = ["HOME", "LC_TIME", "XDG_CONFIG_HOME", "https_proxy", "BACKGROUND_AGENT", "ORG_EXAMPLE_APP_NO_AGENT"]
        #expect(inherited(names) == Set(names))
    }

    @Test func `a launch does not inherit other variables`() {
        let names = ["AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "SSH_AUTH_SOCK", "NOTIFY_SOCKET", "HOMER", "OTHER_APP_NO_AGENT"]
        #expect(inherited(names).isEmpty)
    }

    @Test func `a launch inherits the variables that its manifest names`() {
        #expect(inherited(["A_URL", "A_URLS", "B_1", "B_2", "C"], variables: ["A_URL", "B_*"]) == ["A_URL", "B_1", "B_2"])
    }

    @Test func `the page lists every variable that a launch inherits`() throws {
        let page = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
            .appendingPathComponent("Sources/API/BackgroundTasks/BackgroundTasks.docc/WithoutSystemd.md")
        let text = try String(contentsOf: page, encoding: .utf8)
        for name in LaunchEnvironment.names { #expect(text.contains("`\(name)`"), "\(name)") }
    }
}
