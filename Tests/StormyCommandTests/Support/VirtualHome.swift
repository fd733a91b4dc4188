import BackgroundCommands
import BackgroundLedger
import BackgroundRuntime
import BackgroundTasksTesting
import Foundation
import ProcessSupport
import ServerScripts
import StormyFixtures
import Synchronization
import Testing

@testable import StormyCommand

/// A temporary home on a virtual desktop. Commands, launches and the agent run in this process, in virtual time, without a bus or
/// a server. Only the photo cleaner is a separate process.
final class VirtualHome: Sendable {
    /// The origin of the weather service and of the upload server.
    static let origin = "http://service.test"

    struct Result: Sendable {
        let status: Int32
        let output: String
        let errors: String
    }

    let driver: TestDriver
    let server: VirtualServer
    private let variables: Mutex<[String: String]>

    private init(_ driver: TestDriver, _ environment: [String: String]) {
        self.driver = driver
        server = driver.network.server(Self.origin)
        variables = Mutex(environment)
    }

    /// Runs a test in a new home, from 10:00 in Berlin on a day in June.
    ///
    /// - Parameters:
    ///   - configuration: Lines that follow `base_url` in the section `[weather]`.
    ///   - body: The test.
    static func play<Value: Sendable>(
        _ configuration: String = "", _ body: @Sendable (VirtualHome) async throws -> Value
    ) async throws -> Value {
        let manifest = try AppManifest(
            propertyList: StormyTool.propertyList, place: "Stormy-Info.plist", executableName: "stormy")
        let zone = try #require(TimeZone(identifier: "Europe/Berlin"))
        return try await TestDriver.run(manifest, start: Date(timeIntervalSince1970: 1_749_542_400), zone: zone) { driver in
            let environment = [
                "HOME": driver.home.path, "LC_ALL": "C.UTF-8", "TZ": zone.identifier, "PATH": products.path + ":/usr/bin:/bin",
            ]
            // If the areas of a warning have 50,000 corners, the parser needs a long time on a busy machine. Virtual time must
            // not pass while the parser works.
            await driver.setPatience(.seconds(600))
            return try await ThisProcess.$givenEnvironment.withValue(environment) {
                let home = VirtualHome(driver, environment)
                try home.configure("[weather]\nbase_url = \"\(origin)\"\n" + configuration)
                try await home.adoptApp()
                return try await body(home)
            }
        }
    }

    private func adoptApp() async throws {
        // A launched process reads the configuration before its app begins.
        try StormyTool.configure()
        await driver.adopt(StormyTool.app)
    }

    /// The folder of the programs that were built with the tests.
    private static let products: URL = {
        var url = Bundle.main.executableURL ?? URL(fileURLWithPath: CommandLine.arguments[0])
        for argument in CommandLine.arguments where argument.hasSuffix(".xctest") { url = URL(fileURLWithPath: argument) }
        return url.deletingLastPathComponent()
    }()

    // MARK: The home

    var folder: URL { driver.home }
    var directories: AppDirectories { AppDirectories(appIdentifier: "stormy", environment: environment) }

    var environment: [String: String] {
        get { variables.withLock { $0 } }
        set { variables.withLock { $0 = newValue } }
    }

    func configure(_ text: String) throws {
        let file = directories.configuration.appendingPathComponent("config.toml")
        try AppDirectories.createPrivateFolder(directories.configuration)
        try Data(text.utf8).write(to: file)
        chmod(file.path, 0o600)
    }

    /// Sets whether commands may start agents. The value `false` has the effect of `STORMY_NO_AGENT=1`.
    func setStartsAgents(_ starts: Bool) async {
        environment["STORMY_NO_AGENT"] = starts ? nil : "1"
        await driver.setStartsAgents(starts)
    }

    /// The time of the virtual wall clock.
    var now: Date { driver.clock.date }

    // MARK: Commands

    private let terminalColumns = Mutex<Int?>(nil)

    /// The number of columns of the terminal; `nil` if commands do not print to a terminal.
    var columns: Int? {
        get { terminalColumns.withLock { $0 } }
        set { terminalColumns.withLock { $0 = newValue } }
    }

    @discardableResult
    func stormy(_ arguments: String...) async throws -> Result { try await stormy(arguments) }

    /// Runs a command to its end.
    @discardableResult
    func stormy(_ arguments: [String]) async throws -> Result {
        // A real user needs some time to type. The store rounds times to milliseconds. Without this pause, the time of a response
        // could seem to be in the future.
        try await driver.advance(by: .milliseconds(50))
        let captured = CapturedOutput(columns: columns)
        let status = try await CapturedOutput.$current.withValue(captured) {
            try await driver.run(command: { await StormyRoot.run(arguments) }, environment: environment)
        }
        return Result(status: status, output: captured.output, errors: captured.errors)
    }

    /// Runs code as in a process of Stormy.
    func command<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value {
        let result = Mutex<Swift.Result<Value, any Error>?>(nil)
        _ = try await driver.run(
            command: {
                let outcome = Swift.Result {
                    try StormyTool.configure()
                    return try body()
                }
                result.withLock { $0 = outcome }
                return 0
            }, environment: environment)
        return try #require(result.withLock { $0 }).get()
    }

    /// Runs a command, and returns its JSON document.
    func json(_ arguments: String...) async throws -> Any { try await document(arguments) }

    func rows(_ arguments: String...) async throws -> [[String: Any]] {
        try await document(arguments) as? [[String: Any]] ?? []
    }

    private func document(_ arguments: [String]) async throws -> Any {
        let result = try await stormy(arguments + ["--json"])
        return try JSONSerialization.jsonObject(with: Data(result.output.utf8))
    }

    func status() async throws -> [String: Any] { try await document(["status"]) as? [String: Any] ?? [:] }

    func status(_ part: String, _ key: String) async throws -> Any? { (try await status()[part] as? [String: Any])?[key] }

    /// Returns the outcomes in the history, oldest first. Each entry is "kind outcome".
    func history() async throws -> [String] {
        try await rows("history").map { "\($0["kind"] ?? "") \($0["outcome"] as? String ?? "running")" }
    }

    // MARK: The daily check

    /// Launches the daily check now, and lets virtual time pass until the check has ended.
    @discardableResult
    func check() async throws -> LaunchReport { try await driver.finish(driver.simulateLaunch("StormyNoon")) }

    /// Lets virtual time pass until the daily check was launched at its time and has ended.
    @discardableResult
    func nextCheck() async throws -> LaunchReport { try await driver.finish(driver.advanceToNextLaunch()) }

    // MARK: The desktop

    /// The titles of all notifications that were shown so far, in order. If a notification replaced another notification, its
    /// title is included only if it was not shown before.
    var shown: [String] {
        driver.notifications.history.reduce(into: []) { titles, notice in
            if notice.showings == 1 || !titles.contains(notice.title) { titles.append(notice.title) }
        }
    }

    /// The titles of the notifications on the screen.
    var onScreen: [String] { driver.notifications.shown.map(\.title) }

    func notification(_ identifier: String) -> NotificationReport? {
        driver.ledger.notifications.first { $0.id == identifier }
    }

    // MARK: The weather service

    func serve(_ script: ResponseScript) { server.route("GET", Weather.path, script) }

    /// Serves a forecast for the hours from now on.
    func serveForecast(thunder: Set<Int> = [4, 5, 6]) { serve(.json(Weather.forecast(thunder: thunder, from: now))) }

    func serveCalm() { serveForecast(thunder: []) }
}
