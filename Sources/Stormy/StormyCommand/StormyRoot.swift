import ArgumentParser
import BackgroundCommands

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
            PlaceVerb.self, ScheduleVerb.self, UnscheduleVerb.self, CheckVerb.self, StatusVerb.self, WhyCommand.self,
            HistoryCommand.self, UploadVerb.self, DownloadVerb.self, TransfersVerb.self, AgentVerb.self, QuitVerb.self,
            SimulateCommand.self,
            DemoVerb.self, RehearseVerb.self,
        ])

    /// Parses, runs, and leaves with the contract's exit code.
    static func runAndExit(_ asked: [String]) async -> Never {
        // What another program does, that program explains.
        let isOfAnother = asked.count == 2 && asked[0] == "help" && ["demo", "rehearse"].contains(asked[1])
        let arguments = isOfAnother ? [asked[1], "--help"] : asked
        await CommandRunner.runAndExit(
            StormyRoot.self, arguments,
            before: { if $0 is any BackgroundCommand { try StormyTool.configure() } },
            after: AgentVerb.startIfWorkIsLeft(after:), explain: CommandFailure.init(ofStormy:))
    }
}
