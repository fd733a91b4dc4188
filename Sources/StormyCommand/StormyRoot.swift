import ArgumentParser
import BackgroundCommands
import Foundation

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
    static func runAndExit(_ arguments: [String]) async -> Never {
        do {
            var command = try parseAsRoot(arguments)
            do {
                if command is any BackgroundCommand { try StormyTool.configure() }
                if var command = command as? any AsyncParsableCommand {
                    try await command.run()
                } else {
                    try command.run()
                }
            } catch {
                AgentVerb.startIfWorkIsLeft(after: command)
                leave(with: error)
            }
            AgentVerb.startIfWorkIsLeft(after: command)
            Foundation.exit(Output.hasFailed ? ExitStatus.inputOutput.rawValue : 0)
        } catch {
            exit(withError: error)
        }
    }

    private static func leave(with error: any Error) -> Never {
        if let code = error as? ExitCode { Foundation.exit(code.rawValue) }
        // Help, versions and usage errors: the library knows how to say them, and their types are its own secret.
        if String(reflecting: type(of: error)).hasPrefix("ArgumentParser") { exit(withError: error) }
        let failure = CommandFailure(ofStormy: error)
        Output.note("stormy: \(failure.message)")
        Foundation.exit(failure.status.rawValue)
    }
}
