import ArgumentParser
import BackgroundCommands
import Foundation
import ProcessSupport
import Stormy
import StormyConfiguration

/// The root command with all commands.
package struct StormyRoot: AsyncParsableCommand {
    package static let configuration = CommandConfiguration(
        commandName: "stormy",
        abstract: "Checks for storms at noon, notifies you, and uploads your photos of them.",
        discussion: """
            Example:
              stormy place add Sydney -33.87,151.21
              stormy schedule
            """,
        version: ProductVersion.complete,
        groupedSubcommands: [
            CommandGroup(
                name: "Everyday",
                subcommands: [
                    PlaceVerb.self, ScheduleVerb.self, UnscheduleVerb.self, CheckVerb.self, ForecastVerb.self, StatusVerb.self,
                    ReportVerb.self,
                ]),
            CommandGroup(
                name: "Photos and downloads",
                subcommands: [
                    UploadVerb.self, WatchVerb.self, AuditVerb.self, DownloadVerb.self, TransfersVerb.self, DestinationVerb.self,
                ]),
            CommandGroup(
                name: "Troubleshooting",
                subcommands: [WhyCommand.self, HistoryCommand.self, DoctorCommand.self, NotifyCommand.self, ExitCodesVerb.self]),
            CommandGroup(
                name: "Setup",
                subcommands: [ConfigVerb.self, InstallCommand.self, UninstallCommand.self, AgentVerb.self, QuitVerb.self]),
            CommandGroup(name: "Development", subcommands: [SimulateCommand.self, DemoVerb.self, RehearseVerb.self]),
        ])

    package init() {}

    /// Returns the command that a mistyped word probably means. `nil` if the word is a command or an option, or is not similar to
    /// a command.
    private static func verb(meantBy word: String) -> String? {
        let verbs = configuration.subcommands.compactMap { $0.configuration.commandName } + ["help"]
        guard !word.hasPrefix("-"), !verbs.contains(word), let nearest = NearestName.find(word, among: verbs), nearest.isLikely
        else { return nil }
        return nearest.name
    }

    /// Parses and runs a command.
    ///
    /// - Returns: The exit code, as documented.
    package static func run(_ asked: [String]) async -> Int32 {
        // `stormy-rehearse` prints the help of `demo` and `rehearse`.
        let isOfAnother = asked.count == 2 && asked[0] == "help" && ["demo", "rehearse"].contains(asked[1])
        let arguments = isOfAnother ? [asked[1], "--help"] : asked
        if let first = asked.first, let meant = verb(meantBy: first) {
            Output.note("stormy: unknown command \"\(first)\". Did you mean: stormy \(meant)?")
            return ExitStatus.usage.rawValue
        }
        BackgroundCommands.names = StormyTool.names
        return await SharedStore.$ofCommand.withValue(SharedStore()) { await runOne(arguments) }
    }

    private static func runOne(_ arguments: [String]) async -> Int32 {
        await CommandRunner.run(
            StormyRoot.self, arguments,
            before: { command in
                // Here, the settings are read only for commands of the module `BackgroundCommands`. Stormy's own commands read
                // the settings themselves.
                guard let command = command as? any BackgroundCommand, command.effect.needsSettings else { return }
                try StormyTool.configure()
                AgentVerb.restoreLostCheck()
            },
            after: AgentVerb.startIfWorkIsLeft(after:), explain: CommandFailure.init(ofStormy:))
    }
}
