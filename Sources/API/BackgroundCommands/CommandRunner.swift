import ArgumentParser
import Foundation

/// Runs the commands of a tool that is made of them.
package enum CommandRunner {
    /// Parses, runs, and leaves with the contract's exit code.
    ///
    /// - Parameters:
    ///   - before: between parsing and running.
    ///   - after: when the command ended, however it did.
    ///   - explain: what an error means for whoever typed the command.
    package static func runAndExit(
        _ root: any AsyncParsableCommand.Type, _ arguments: [String],
        before: (any ParsableCommand) throws -> Void = { _ in }, after: (any ParsableCommand) -> Void = { _ in },
        explain: (any Error) -> CommandFailure = CommandFailure.init
    ) async -> Never {
        do {
            var command = try root.parseAsRoot(arguments)
            do {
                try before(command)
                if var command = command as? any AsyncParsableCommand {
                    try await command.run()
                } else {
                    try command.run()
                }
            } catch {
                after(command)
                leave(root, with: error, explain)
            }
            after(command)
            remind(root, of: command)
            Foundation.exit(Output.hasFailed ? ExitStatus.inputOutput.rawValue : 0)
        } catch {
            root.exit(withError: error)
        }
    }

    /// A person at a terminal hears of what no desktop could show, until `status` has listed it.
    private static func remind(_ root: any AsyncParsableCommand.Type, of command: any ParsableCommand) {
        guard isatty(STDERR_FILENO) != 0, type(of: command)._commandName != "status" else { return }
        guard let line = (try? UnseenNotifications.current())?.reminder(program: root._commandName) else { return }
        Output.note(line)
    }

    private static func leave(
        _ root: any AsyncParsableCommand.Type, with error: any Error, _ explain: (any Error) -> CommandFailure
    ) -> Never {
        if let code = error as? ExitCode { Foundation.exit(code.rawValue) }
        // Help, versions and usage errors: the library knows how to say them, and their types are its own secret.
        if String(reflecting: type(of: error)).hasPrefix("ArgumentParser") { root.exit(withError: error) }
        let failure = explain(error)
        Output.note("\(root._commandName): \(failure.message)")
        Foundation.exit(failure.status.rawValue)
    }
}
