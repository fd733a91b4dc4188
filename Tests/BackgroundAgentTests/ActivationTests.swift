@testable import BackgroundLedger
import BackgroundScheduling
import Foundation
import ProcessSupport
import Testing

@testable import BackgroundAgent

/// Tests of activation tokens. With the token of a button press, the launched app can bring a window to the front.
@Suite(.timeLimit(.minutes(30))) struct ActivationTests {
    /// An activation token is valid for some seconds after the button press. An app does not get the token with which the
    /// agent itself was started.
    @Test(arguments: [(0.0, "token-1"), (60.0, "")])
    func `a launch by a button receives the activation token of a recent press`(_ age: Double, _ expected: String) throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("activation-" + UUID().uuidString)
        defer { try? FileManager.default.removeItem(at: folder) }
        let ledger = try Ledger(AppDirectories(appIdentifier: "app", environment: ["HOME": folder.path]))
        let file = folder.appendingPathComponent("said")
        let script = "printf '%s|%s' \"$XDG_ACTIVATION_TOKEN\" \"$DESKTOP_STARTUP_ID\" > '\(file.path)'"
        let pressed = Date(timeIntervalSinceNow: -age)
        let id = try ledger.write { transaction in
            try transaction.setFact(
                .app, AppRecord(executable: "/bin/sh", arguments: ["-c", script], version: "1", displayName: "App"))
            let content = NotificationContent(
                title: "t", subtitle: "", body: "", categoryIdentifier: "", threadIdentifier: "", userInfo: "{}", sound: nil,
                interruptionLevel: 1, badge: nil)
            try transaction.addNotification("n", content, dueAt: nil, now: pressed)
            let notification = try #require(try transaction.notification("n"))
            try transaction.addResponse("open", to: notification, activationToken: "token-1", now: pressed)
            return try transaction.insert(
                LaunchRecord(
                    kind: .notificationResponse, identifier: "n", requestToken: nil, generation: 1, reason: "pressed",
                    simulated: false, servedOccurrence: nil, startedAt: pressed)
            ).id!
        }
        let loop = try EventLoop()
        let launcher = ProcessLauncher(ledger: ledger, loop: loop)
        launcher.onEnd = { _, _ in loop.stop() }
        setenv("DESKTOP_STARTUP_ID", "the agent's", 1)
        defer { unsetenv("DESKTOP_STARTUP_ID") }
        _ = try launcher.start(id)
        loop.run(turn: {})
        #expect(try String(contentsOf: file, encoding: .utf8) == "\(expected)|\(expected)")
    }
}
