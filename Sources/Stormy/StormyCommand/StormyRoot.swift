import ArgumentParser
import BackgroundCommands
import Foundation
import Stormy
import StormyConfiguration

/// All verbs.
package struct StormyRoot: AsyncParsableCommand {
    package static let configuration = CommandConfiguration(
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

    package init() {}

    /// `nil`: it is a verb, or an option, or like none.
    private static func verb(meantBy word: String) -> String? {
        let verbs = configuration.subcommands.compactMap { $0.configuration.commandName } + ["help"]
        guard !word.hasPrefix("-"), !verbs.contains(word), let nearest = NearestName.find(word, among: verbs), nearest.isLikely
        else { return nil }
        return nearest.name
    }

    /// Parses and runs a command.
    ///
    /// - Returns: The exit code of the contract.
    package static func run(_ asked: [String]) async -> Int32 {
        // `stormy-rehearse` prints the help of `demo` and `rehearse`.
        let isOfAnother = asked.count == 2 && asked[0] == "help" && ["demo", "rehearse"].contains(asked[1])
        let arguments = isOfAnother ? [asked[1], "--help"] : asked
        if let first = asked.first, let meant = verb(meantBy: first) {
            Output.note("stormy: there is no verb \"\(first)\". Did you mean: stormy \(meant)?")
            return ExitStatus.usage.rawValue
        }
        return await SharedStore.$ofCommand.withValue(SharedStore()) { await runOne(arguments) }
    }

    private static func runOne(_ arguments: [String]) async -> Int32 {
        await CommandRunner.run(
            StormyRoot.self, arguments,
            before: { command in
                // Commands of Stormy's own read the settings themselves.
                guard let command = command as? any BackgroundCommand, command.effect.needsSettings else { return }
                try StormyTool.configure()
                AgentVerb.restoreLostCheck()
            },
            after: AgentVerb.startIfWorkIsLeft(after:), explain: CommandFailure.init(ofStormy:))
    }
}
