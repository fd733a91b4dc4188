import ArgumentParser
import BackgroundRuntime
import BackgroundTasks
import Foundation
import ProcessSupport
import Synchronization

/// `doctor`: looks at everything that background work needs here, and says what helps. It changes nothing without `--fix`.
public struct DoctorCommand: BackgroundCommand {
    public static let configuration = CommandConfiguration(
        commandName: "doctor", abstract: "What keeps this app from its work, and what helps.",
        discussion: """
            Exit code 0: all is well; 1: there are warnings; 2: a promise cannot be kept. What this desktop keeps stands at the end, and
            counts for neither.

            Example:
              \(BackgroundCommands.program) doctor --fix
            """)

    @Flag(help: "Run what helps, where it is safe, and look again.") var fix = false
    @Flag(help: "Print JSON: rows of check, status, message and fix; the last one has the guarantees.") var json = false

    public init() {}

    public var effect: CommandEffect { .examines }

    /// What an app's own examination may want to know.
    public struct Context: Sendable {
        /// What a person types before a verb of this app.
        public let command: String
        /// Identifiers of the requests that are pending; `nil`: the ledger cannot be read.
        public let pendingRequests: [String]?
    }

    /// What an app looks at besides, in this process; called once for each look. Set it before a command runs.
    public static var examinations: [@Sendable (Context) -> [DoctorFinding]] {
        get { ofApp.withLock { $0 } }
        set { ofApp.withLock { $0 = newValue } }
    }

    private static let ofApp = Mutex<[@Sendable (Context) -> [DoctorFinding]]>([])

    private static let parts: [any Examination] = [
        EnvironmentExamination(), InstallationExamination(), FoldersExamination(), ClockExamination(), LedgerExamination(),
        AgentExamination(), LoginExamination(), RequestsExamination(), TransfersExamination(), ConditionsExamination(),
        NotificationsExamination(),
    ]

    public func perform() async throws {
        var (findings, guarantees) = Self.examine()
        var (done, looks): (Set<String>, Int) = ([], 0)
        // A fault may be found only after another one was mended, as in a file that could not be read.
        while fix, looks < Self.mostLooks, Self.help(findings, &done) {
            (findings, guarantees) = Self.examine()
            looks += 1
        }
        if json {
            try Output.json(findings.map(DoctorRow.finding) + [.guarantees(guarantees)])
        } else {
            for finding in findings { Self.show(finding, isFixing: fix) }
            Output.line()
            for line in GuaranteesReport(guarantees).lines { Output.line(line) }
        }
        let worst = findings.contains { $0.status == .failed } ? 2 : findings.contains { $0.status == .warning } ? 1 : 0
        if worst != 0 { throw ExitCode(Int32(worst)) }
    }

    /// What is found now. Nothing is changed.
    ///
    /// - Parameter verb: by which the person asked.
    package static func examine(
        verb: String = configuration.commandName ?? ""
    ) -> (findings: [DoctorFinding], guarantees: BackgroundGuarantees) {
        let app = ExaminedApp.look(verb: verb)
        let context = Context(command: app.command, pendingRequests: app.pendingRequests)
        let findings = parts.flatMap { $0.findings(app) } + examinations.flatMap { $0(context) }
        return (findings, BackgroundGuarantees(app.desktopFacts))
    }

    /// - Parameter isFixing: what is safe was run; what is left is a person's to decide.
    private static func show(_ finding: DoctorFinding, isFixing: Bool) {
        let mark =
            switch finding.status {
            case .ok: "✓"
            case .warning: "!"
            case .failed: "✗"
            }
        let text = "\(mark) \(finding.check): \(finding.message)"
        Output.line(finding.status == .ok ? text : Output.loud(text))
        if let fix = finding.fix {
            Output.line("    \(fix.command)" + (isFixing && !fix.isSafe ? "    # yours to decide: --fix does not run it" : ""))
        }
    }

    /// The most often that `--fix` looks again.
    private static let mostLooks = 10

    /// Runs what is safe, each line once. What it does goes to standard error: standard output has the rows.
    ///
    /// - Parameter done: The lines that were run.
    /// - Returns: Whether a line was run now.
    private static func help(_ findings: [DoctorFinding], _ done: inout Set<String>) -> Bool {
        let before = done.count
        for case let fix? in findings.map(\.fix) where fix.isSafe && done.insert(fix.command).inserted {
            Output.note("doctor: \(fix.command)")
            var shell = ChildProcess(
                path: "/bin/sh", arguments: ["-c", fix.command], environment: ThisProcess.environment)
            shell.standardOutput = STDERR_FILENO
            do throws(ChildProcess.Failure) {
                let code = ChildProcess.wait(for: try shell.start())
                if code != 0 { Output.note("doctor: that ended with \(code)") }
            } catch {
                Output.note("doctor: \(error)")
            }
        }
        return done.count > before
    }
}
