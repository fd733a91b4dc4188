import ArgumentParser
import BackgroundCommands
import Foundation
import StormyConfiguration

/// All verbs.
struct StormyRoot: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "stormy",
        abstract: "Watches for storms at noon, tells you, and sends your photos of them.",
        discussion: """
            Example:
              stormy place add Sydney -33.87,151.21
              stormy schedule
            """,
        version: StormyTool.version,
        subcommands: [
            PlaceVerb.self, ScheduleVerb.self, UnscheduleVerb.self, CheckVerb.self, ForecastVerb.self, ReportVerb.self,
            StatusVerb.self, WhyCommand.self,
            HistoryCommand.self, UploadVerb.self, DownloadVerb.self, TransfersVerb.self, AgentVerb.self, QuitVerb.self,
            SimulateCommand.self, NotifyCommand.self, DoctorCommand.self, ConfigVerb.self, InstallCommand.self,
            UninstallCommand.self, DemoVerb.self,
            RehearseVerb.self,
        ])

    /// `nil`: it is a verb, or an option, or like none.
    private static func verb(meantBy word: String) -> String? {
        let verbs = configuration.subcommands.compactMap { $0.configuration.commandName } + ["help"]
        guard !word.hasPrefix("-"), !verbs.contains(word), let nearest = NearestName.find(word, among: verbs), nearest.isLikely
        else { return nil }
        return nearest.name
    }

    /// Parses, runs, and leaves with the contract's exit code.
    static func runAndExit(_ asked: [String]) async -> Never {
        // What another program does, that program explains.
        let isOfAnother = asked.count == 2 && asked[0] == "help" && ["demo", "rehearse"].contains(asked[1])
        let arguments = isOfAnother ? [asked[1], "--help"] : asked
        if let first = asked.first, let meant = verb(meantBy: first) {
            Output.note("stormy: there is no verb \"\(first)\". Did you mean: stormy \(meant)?")
            Foundation.exit(ExitStatus.usage.rawValue)
        }
        await CommandRunner.runAndExit(
            StormyRoot.self, arguments,
            before: { command in
                // Who only looks finds mistakes by itself, and changes nothing; what is installed depends on no setting.
                if command is DoctorCommand || command is ConfigVerb || command is InstallCommand || command is UninstallCommand {
                    return
                }
                guard command is any BackgroundCommand else { return }
                try StormyTool.configure()
                AgentVerb.restoreLostCheck()
            },
            after: AgentVerb.startIfWorkIsLeft(after:), explain: CommandFailure.init(ofStormy:))
    }
}
