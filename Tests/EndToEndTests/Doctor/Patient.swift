import BackgroundLedger
import FaultyServer
import Foundation
import ProcessSupport
import Testing

/// A home without faults. The home has a place, the daily check, an agent, a desktop and a weather server. A test then plants a
/// fault.
final class Patient {
    let home: Home
    let desktop: Desktop
    let server: FaultyServer
    /// The program `stormy` that examines the home. The program is a copy if the fault changes programs.
    private(set) var program = Home.product("stormy")
    /// Processes that run until the examination is over.
    var held: [Child] = []

    struct Row: Decodable {
        let check: String
        let status: String
        let message: String
        let fix: String?
    }

    struct Examination {
        let rows: [Row]
        let status: Int32
        let errors: String

        func row(_ check: String) -> Row? {
            rows.first { $0.check == check && $0.status != "ok" } ?? rows.first { $0.check == check }
        }
    }

    init(_ desktop: Desktop, _ server: FaultyServer, extra: String = "") throws {
        (self.desktop, self.server) = (desktop, server)
        home = try Home(server: server, desktop: desktop, extra: extra)
        try home.installChooser("exit 1")
        // Only one agent is started, after the commands. The fault must not be planted while an agent is starting.
        home.environment["STORMY_NO_AGENT"] = "1"
        #expect(try home.stormy("place", "add", "Here", "1,1").status == 0)
        home.environment["STORMY_NO_AGENT"] = nil
        #expect(try home.stormy("schedule").status == 0)
        // When the agent starts, it restricts the mode of its folders.
        try home.wait("the agent") { try $0.fact(.agent) }
    }

    deinit { for child in held { child.end(SIGKILL) } }

    var directories: AppDirectories { home.directories }

    func path(_ below: String) -> String { home.folder.path + "/" + below }

    func examine() throws -> Examination {
        try read(Child.run(program, ["doctor", "--json"], environment: home.environment))
    }

    /// Runs a line that `doctor` printed, without changes, in a shell. Then examines the home again in this shell. Background
    /// processes that the line starts keep running.
    func carryOut(_ line: String) throws -> Examination {
        let file = path("examination")
        let script = "{ \(line)\n} >/dev/null\n'\(program)' doctor --json >'\(file)' 2>'\(file).errors'"
        let status = try Child("sh", ["-c", script], environment: home.environment).waitForEnd()
        func text(_ file: String) -> String { (try? String(contentsOfFile: file, encoding: .utf8)) ?? "" }
        return try read(Child.Result(status: status, output: text(file), errors: text(file + ".errors")))
    }

    private func read(_ result: Child.Result) throws -> Examination {
        let rows = try? JSONDecoder().decode([Row].self, from: Data(result.output.utf8))
        return Examination(
            rows: try #require(rows, "\(result)"), status: result.status, errors: result.errors)
    }

    func shell(_ script: String) throws {
        let result = try Child.run("sh", ["-ec", script], environment: home.environment)
        #expect(result.status == 0, "\(script): \(result.errors)")
    }

    func write(_ text: String, to below: String, mode: mode_t = 0o600) throws -> String {
        let file = path(below)
        try Data(text.utf8).write(to: URL(fileURLWithPath: file))
        chmod(file, mode)
        return file
    }

    func ledger(_ body: (LedgerTransaction) throws -> Void) throws { try Ledger(directories).write(body) }

    func sql(_ statement: String, on file: String) throws {
        try shell(
            "python3 -c \"import sqlite3, sys; c = sqlite3.connect('\(file)'); c.execute(sys.argv[1]); c.commit()\" \"\(statement)\""
        )
    }

    /// Uses a copy of the program from now on, so that a fault can change the copy.
    ///
    /// - Parameter restarts: Whether an agent is started from the copy.
    func useCopies(restarts: Bool = true) throws {
        try FileManager.default.createDirectory(atPath: path("programs"), withIntermediateDirectories: true)
        for name in ["stormy", "background-agent", "photo-cleaner", "file-chooser"] {
            try Home.copyProgram(Home.product(name), to: path("programs/" + name))
        }
        program = path("programs/stormy")
        guard restarts else { return }
        try home.killAgent()
        try shell("'\(program)' install; '\(program)' uninstall; '\(program)' schedule")
    }
}

/// A fault that a test plants.
struct PlantedFault: Sendable {
    enum Mending: Sendable {
        /// The line that `doctor` prints as the fix repairs the fault.
        case byItsFix
        /// No command repairs the fault, or only a command that a test cannot run. The closure does what the user would do.
        case byHand(@Sendable (Patient) throws -> Void)
        /// The fault cannot be repaired.
        case notAtAll
    }

    let name: String
    /// The row of `doctor` that must report the fault.
    let check: String
    let mending: Mending
    /// A part of the message that `doctor` must print.
    let says: String
    let plant: @Sendable (Patient) throws -> Void

    init(
        _ name: String, _ check: String, says: String = "", _ mending: Mending = .byItsFix,
        plant: @escaping @Sendable (Patient) throws -> Void
    ) {
        (self.name, self.check, self.says, self.mending, self.plant) = (name, check, says, mending, plant)
    }

    var isMendedByItsFix: Bool { if case .byItsFix = mending { true } else { false } }
}
