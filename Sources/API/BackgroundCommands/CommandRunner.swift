import ArgumentParser
import BackgroundRuntime
import Foundation
import ProcessSupport

/// Runs the commands of a command-line tool.
package enum CommandRunner {
    /// Parses and runs a command.
    ///
    /// - Parameters:
    ///   - program: The words that a user types before the name of a command. If `nil`, the root command's name is used.
    ///   - before: A closure that is called after the arguments were parsed and before the command runs.
    ///   - after: A closure that is called when the command has ended, with or without an error.
    ///   - explain: A closure that converts an error to the message and the exit code for the user.
    /// - Returns: The exit code, as `ExitCodes.md` defines it.
    package static func run(
        _ root: any AsyncParsableCommand.Type, _ arguments: [String], program: String? = nil,
        before: (any ParsableCommand) throws -> Void = { _ in }, after: (any ParsableCommand) -> Void = { _ in },
        explain: (any Error) -> CommandFailure = CommandFailure.init
    ) async -> Int32 {
        let program = program ?? root._commandName
        do {
            if let name = unclearName(arguments) {
                throw ValidationError(
                    "Unknown option '\(name)'. If '\(name)' is the name of a file or a place, write -- before the name.")
            }
            var command = try root.parseAsRoot(arguments)
            if let refusal = AppRuntime.shared.directories.refusal { return report(root, program, refusal, explain) }
            do {
                try before(command)
                if var command = command as? any AsyncParsableCommand {
                    try await command.run()
                } else {
                    try command.run()
                }
            } catch {
                after(command)
                return report(root, program, error, explain)
            }
            after(command)
            remind(program, after: command)
            if Output.hasFailed { return ExitStatus.inputOutput.rawValue }
            return AppRuntime.shared.lacksAgent ? ExitStatus.unavailable.rawValue : 0
        } catch {
            return reportUsage(root, program, error)
        }
    }

    /// Returns the first argument that the parser would split into one-letter options. For example, the parser would find the
    /// option `-h` in the file name "-photo.jpg". Without this check, the command would print the help with the exit code 0, and
    /// ignore all other names.
    private static func unclearName(_ arguments: [String]) -> String? {
        arguments.prefix { $0 != "--" }.first { argument in
            guard argument.count > 2, argument.hasPrefix("-"), !argument.hasPrefix("--") else { return false }
            // A minus sign before a digit is accepted, because a coordinate can begin with a minus sign.
            return argument.contains("h") || argument.dropFirst().first?.isLetter == true
        }
    }

    /// Prints a reminder of notifications that no desktop could show. The reminder is printed to a terminal, until the command
    /// `status` has listed these notifications.
    private static func remind(_ program: String, after command: any ParsableCommand) {
        guard Terminal.isTerminal(STDERR_FILENO), (command as? any CommandWithEffect)?.effect != .summarizes else { return }
        guard let line = (try? UnseenNotifications.current())?.reminder(program: program) else { return }
        Output.note(line)
    }

    private static func report(
        _ root: any AsyncParsableCommand.Type, _ program: String, _ error: any Error, _ explain: (any Error) -> CommandFailure
    ) -> Int32 {
        if let code = error as? ExitCode { return code.rawValue }
        // Errors of the library ArgumentParser are recognized by the name of their type, because the library does not make these
        // types public.
        if String(reflecting: type(of: error)).hasPrefix("ArgumentParser") { return reportUsage(root, program, error) }
        let failure = explain(error)
        Output.note("\(program): \(failure.message)")
        return failure.status.rawValue
    }

    /// Prints help and versions to standard output. Usage errors are printed to standard error, with the same prefix as all
    /// errors.
    private static func reportUsage(_ root: any AsyncParsableCommand.Type, _ program: String, _ error: any Error) -> Int32 {
        let code = root.exitCode(for: error)
        var text = root.fullMessage(for: error)
        if !code.isSuccess, text.hasPrefix("Error: ") { text = "\(program): " + text.dropFirst("Error: ".count) }
        if !text.isEmpty { Output.write(Data((text + "\n").utf8), to: code.isSuccess ? STDOUT_FILENO : STDERR_FILENO) }
        return code.isSuccess && Output.hasFailed ? ExitStatus.inputOutput.rawValue : code.rawValue
    }
}
