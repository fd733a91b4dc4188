import ArgumentParser
import BackgroundCommands

/// The command `exit-codes`. The user can also call the command as `help exit-codes`.
struct ExitCodesVerb: AsyncParsableCommand, CommandWithEffect {
    var effect: CommandEffect { .examines }

    static let configuration = CommandConfiguration(
        commandName: "exit-codes", abstract: "Lists the exit codes of all commands.",
        discussion: """
            \(list)

            A command that was given several files, transfers or places exits with the code of the first problem, in the order of its arguments.

            Example:
              stormy exit-codes
            """)

    private static let list = ExitStatus.meanings.map { code, meaning in "\(code)\(code < 10 ? "   " : "  ")\(meaning)" }
        .joined(separator: "\n")

    func run() async throws { Output.line(Self.list) }
}

extension ExitStatus {
    /// The exit codes of all commands, with their meanings.
    static let meanings: [(Int32, String)] =
        [
            (0, "Done"), (1, "doctor: there are warnings. rehearse, demo: something failed"),
            (2, "doctor: something does not work"),
            (10, "check --exit-code: a storm is expected"),
        ] + allCases.map { ($0.rawValue, $0.meaning) }

    private var meaning: String {
        switch self {
        case .usage: "The command line is not valid"
        case .badData: "An argument or a file has a value that is not valid"
        case .notFound: "A file, place, transfer or request does not exist"
        case .unavailable: "A service, server or program is not available"
        case .cannotCreate: "A file cannot be created"
        case .inputOutput: "A file cannot be read or written"
        case .tryAgain: "The work is not complete yet: try again later"
        case .notPermitted: "Not permitted, or a photo was held back because its location cannot be removed"
        case .badConfiguration: "The configuration has a mistake, or a newer version wrote the database"
        }
    }
}
