import ArgumentParser
import BackgroundRuntime
import BackgroundTasks
import Foundation
import ProcessSupport
import Synchronization

/// The command `doctor`, which examines everything that background work needs and shows commands that correct problems. Without
/// `--fix`, the command changes nothing.
public struct DoctorCommand: BackgroundCommand {
    public static let configuration = CommandConfiguration(
        commandName: "doctor", abstract: "Shows problems that prevent this app from working, and how to fix them.",
        discussion: """
            The exit code is 0 without problems, 1 with warnings, and 2 if something does not work. Passed checks and the
            capabilities of this desktop are listed with --all. Capabilities do not change the exit code.

            Example:
              \(BackgroundCommands.program) doctor --fix
            """)

    @Flag(help: "Also show the checks that passed, and the capabilities of this desktop.") var all = false
    @Flag(help: "Run the fixes that are safe, then check again.") var fix = false
    @Flag(help: "Print JSON with one row for each check. The last row has the capabilities of this desktop.") var json = false

    public init() {}

    public var effect: CommandEffect { .examines }

    /// The values that `doctor` passes to an examination that the app adds.
    public struct Context: Sendable {
        /// The words that a user types before a command of this app.
        public let command: String
        /// The identifiers of the pending requests, or `nil` if the ledger cannot be read.
        public let pendingRequests: [String]?
    }

    /// The app's own examinations. The command `doctor` calls each function once. With `--fix`, `doctor` calls each function
    /// again after each round of fixes. Set the functions before a command runs.
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
        // After a fix, the examination is repeated, because a fix can reveal another problem, for example in a file that could
        // not be read before.
        while fix, looks < Self.maximumExaminations, Self.help(findings, &done) {
            (findings, guarantees) = Self.examine()
            looks += 1
        }
        if json {
            try Output.json(findings.map(DoctorRow.finding) + [.guarantees(guarantees)])
        } else {
            Output.line(summary(of: findings))
            for finding in findings where all || finding.status != .ok { Self.show(finding, isFixing: fix) }
            if all {
                Output.line()
                for line in GuaranteesReport(guarantees).lines { Output.line(line) }
            }
        }
        let worst = findings.contains { $0.status == .failed } ? 2 : findings.contains { $0.status == .warning } ? 1 : 0
        if worst != 0 { throw ExitCode(Int32(worst)) }
    }

    private func summary(of findings: [DoctorFinding]) -> String {
        func count(_ status: DoctorFinding.Status, _ word: String) -> String? {
            let number = findings.count { $0.status == status }
            return number == 0 ? nil : "\(number) \(word)\(number == 1 ? "" : "s")"
        }
        let parts = [count(.failed, "problem"), count(.warning, "warning")].compactMap { $0 }
        let passed = "\(findings.count { $0.status == .ok }) checks passed"
        return (parts.isEmpty ? ["No problems found"] : parts).joined(separator: ", ") + "; \(passed)"
            + (all ? "." : " (--all shows these checks).")
    }

    /// Returns the current findings. The method changes nothing.
    ///
    /// - Parameter verb: the name of the command that the user typed.
    package static func examine(
        verb: String = configuration.commandName ?? ""
    ) -> (findings: [DoctorFinding], guarantees: BackgroundGuarantees) {
        let app = ExaminedApp.current(verb: verb)
        let context = Context(command: app.command, pendingRequests: app.pendingRequests)
        let findings = parts.flatMap { $0.findings(app) } + examinations.flatMap { $0(context) }
        return (findings, BackgroundGuarantees(app.desktopFacts))
    }

    /// - Parameter isFixing: `true` if the safe fixes were already run. The other fixes need a decision of the user.
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
            Output.line("    \(fix.command)" + (isFixing && !fix.isSafe ? "    # --fix does not run this command" : ""))
        }
    }

    /// The maximum number of times that `--fix` repeats the examination.
    private static let maximumExaminations = 10

    /// Runs the safe fixes. Each command runs only once. The output of the commands goes to standard error, because standard
    /// output contains the findings.
    ///
    /// - Parameter done: The commands that were already run. The method adds new commands.
    /// - Returns: `true` if the method ran a command.
    private static func help(_ findings: [DoctorFinding], _ done: inout Set<String>) -> Bool {
        let before = done.count
        for case let fix? in findings.map(\.fix) where fix.isSafe && done.insert(fix.command).inserted {
            Output.note("doctor: \(fix.command)")
            var shell = ChildProcess(
                path: "/bin/sh", arguments: ["-c", fix.command], environment: ThisProcess.environment)
            shell.standardOutput = STDERR_FILENO
            do throws(ChildProcess.Failure) {
                let code = ChildProcess.wait(for: try shell.start())
                if code != 0 { Output.note("doctor: the command failed with exit code \(code)") }
            } catch {
                Output.note("doctor: \(error)")
            }
        }
        return done.count > before
    }
}
