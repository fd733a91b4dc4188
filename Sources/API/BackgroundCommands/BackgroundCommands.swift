import ArgumentParser
import BackgroundLedger
import BackgroundRuntime
import BackgroundTasks
import Foundation
import ProcessSupport
import Synchronization

/// The commands with which a user controls an app's background work. An app can add all commands as one group to its subcommands,
/// or add single commands. An app without commands uses ``runIfAsked(_:)``.
public struct BackgroundCommands: AsyncParsableCommand {
    public static let configuration = CommandConfiguration(
        commandName: "background", abstract: "Shows what runs in the background, and why something does not run.",
        subcommands: [
            StatusCommand.self, WhyCommand.self, HistoryCommand.self, TransfersCommand.self, SimulateCommand.self,
            NotifyCommand.self, DoctorCommand.self, InstallCommand.self, UninstallCommand.self, QuitCommand.self,
        ])

    public init() {}

    /// If the first argument is `background`, runs a command for background work and ends the process. Otherwise the method
    /// returns immediately.
    ///
    /// Call this method after the app's manifest was set and before all other work of the process. Example of a command line:
    /// `tide-example background why`.
    @MainActor
    public static func runIfAsked(_ arguments: [String]? = nil) {
        let arguments = arguments ?? Array(ThisProcess.arguments.dropFirst())
        guard arguments.first == configuration.commandName, LaunchContext.current == nil else { return }
        Task { ProcessExit.end(await run(Array(arguments.dropFirst()))) }
        dispatchMain()
    }

    private static func run(_ arguments: [String]) async -> Int32 {
        await CommandRunner.run(BackgroundCommands.self, arguments, program: typed)
    }

    /// The names that the commands show for requests and sessions. The keys are the identifiers of the requests and sessions. Set
    /// the names before a command runs.
    package static var names: [String: String] {
        get { displayNames.withLock { $0 } }
        set { displayNames.withLock { $0 = newValue } }
    }

    private static let displayNames = Mutex<[String: String]>([:])

    /// Returns the name of a request or session that commands show, for example "daily check (StormyNoon)". If the identifier has
    /// no name, returns only the identifier.
    static func name(of identifier: String) -> String { names[identifier].map { "\($0) (\(identifier))" } ?? identifier }

    static var program: String { AppRuntime.programName }

    /// The words that a user types before the name of a command, for the examples in the help. If the app adds all commands as a
    /// group, the words include `background`.
    static var typed: String {
        let group = configuration.commandName ?? ""
        return ThisProcess.arguments.dropFirst().prefix(2).contains(group) ? "\(program) \(group)" : program
    }
}

/// A command for the background work of an app, for example ``StatusCommand``. If your app has settings, read the settings before
/// you run a command.
public protocol BackgroundCommand: AsyncParsableCommand, CommandWithEffect {
    /// Runs the command. If this method throws an error, `run()` prints the error for the user.
    func perform() async throws
}

extension BackgroundCommand {
    /// The default effect: the command changes something.
    public var effect: CommandEffect { .changes }

    public func run() async throws {
        do {
            if effect.changesNothing {
                AppRuntime.shared.replaceMissingLedger()
                AppRuntime.shared.copyUnwritableLedger()
            }
            try await perform()
            if effect.startsAgent { AppRuntime.shared.startAgentIfWorkIsLeft() }
        } catch let error as ExitCode {
            throw error
        } catch {
            let failure = CommandFailure(error)
            Output.note("\(BackgroundCommands.program): \(failure.message)")
            throw ExitCode(failure.status.rawValue)
        }
    }

    /// Returns a command configuration with an example, because the help of every command shows an example.
    static func describe(_ name: String, _ abstract: String, example: String) -> CommandConfiguration {
        CommandConfiguration(
            commandName: name, abstract: abstract, discussion: "Example:\n  \(BackgroundCommands.typed) \(example)")
    }
}
