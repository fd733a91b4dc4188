import ArgumentParser
import BackgroundLedger
import BackgroundRuntime
import BackgroundTasks
import Foundation
import ProcessSupport

/// What a person can ask of an app's background work, for any app to mount: as a group among its own subcommands, verb by
/// verb, or with ``runIfAsked(_:)`` in an app that has no commands.
public struct BackgroundCommands: AsyncParsableCommand {
    public static let configuration = CommandConfiguration(
        commandName: "background", abstract: "What runs in the background, and why not.",
        subcommands: [
            StatusCommand.self, WhyCommand.self, HistoryCommand.self, TransfersCommand.self, SimulateCommand.self,
            NotifyCommand.self, DoctorCommand.self, InstallCommand.self, UninstallCommand.self, QuitCommand.self,
        ])

    public init() {}

    /// Runs a verb of the group, and ends the process, if the first argument is `background`; else returns at once.
    ///
    /// Call it first, with the app's manifest set: `tide-example background why`.
    @MainActor
    public static func runIfAsked(_ arguments: [String]? = nil) {
        let arguments = arguments ?? Array(ThisProcess.arguments.dropFirst())
        guard arguments.first == configuration.commandName, LaunchContext.current == nil else { return }
        Task { ProcessExit.leave(await run(Array(arguments.dropFirst()))) }
        dispatchMain()
    }

    private static func run(_ arguments: [String]) async -> Int32 {
        await CommandRunner.run(BackgroundCommands.self, arguments, program: typed)
    }

    static var program: String { AppRuntime.programName }

    /// What a person types before a verb, for the examples in the help: the verbs are a group, unless an app has them among its own.
    static var typed: String {
        let group = configuration.commandName ?? ""
        return ThisProcess.arguments.dropFirst().prefix(2).contains(group) ? "\(program) \(group)" : program
    }
}

/// A verb of the group. An app with settings of its own reads them before it runs one.
public protocol BackgroundCommand: AsyncParsableCommand, CommandWithEffect {
    /// What the verb does; its errors are explained to the person by `run()`.
    func perform() async throws
}

extension BackgroundCommand {
    /// It changes something, unless the command says otherwise.
    public var effect: CommandEffect { .changes }

    public func run() async throws {
        do {
            if effect.onlyLooks {
                AppRuntime.shared.makeNoLedger()
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

    /// With an example, which every verb's help has.
    static func describe(_ name: String, _ abstract: String, example: String) -> CommandConfiguration {
        CommandConfiguration(
            commandName: name, abstract: abstract, discussion: "Example:\n  \(BackgroundCommands.typed) \(example)")
    }
}
