import ArgumentParser
import BackgroundCommands
import BackgroundRuntime
import Foundation
import ProcessSupport

/// The commands `demo` and `rehearse`, which start the separate program `stormy-rehearse`. `stormy-rehearse` contains an HTTP
/// server, which the other commands do not need.
private protocol RehearsalVerb: AsyncParsableCommand, CommandWithEffect {
    var arguments: [String] { get }
}

extension RehearsalVerb {
    var effect: CommandEffect { .ends }

    func run() async throws {
        if arguments == ["--version"] { return Output.line(ProductVersion.complete) }
        try Self.runElsewhere(arguments)
    }

    static func runElsewhere(_ arguments: [String]) throws {
        let name = configuration.commandName ?? ""
        switch CompanionProgram.find("stormy-rehearse") {
        case .success(let path):
            // `stormy-rehearse` starts the commands of this executable.
            setenv(CompanionProgram.starterVariable, AppManifest.executableURL.path, 1)
            throw become(path, [name] + arguments)
        case .failure(let missing):
            throw CommandFailure(
                .unavailable,
                "`stormy \(name)` needs the program stormy-rehearse, but \(missing). "
                    + "Install stormy-rehearse in the folder of stormy. "
                    + "In a checkout of the sources, build the program with `swift build --product stormy-rehearse`")
        }
    }
}

struct DemoVerb: RehearsalVerb {
    static let configuration = CommandConfiguration(
        commandName: "demo", abstract: "Shows a check, a storm and a photo upload in under 30 s, in a temporary home.",
        discussion: "Example:\n  stormy demo")

    @Argument(parsing: .captureForPassthrough) var arguments: [String] = []
}

struct RehearseVerb: RehearsalVerb {
    static let configuration = CommandConfiguration(
        commandName: "rehearse",
        abstract: "Interrupts work in every way, and checks each result.",
        discussion: "Example:\n  stormy rehearse")

    @Argument(parsing: .captureForPassthrough) var arguments: [String] = []
}

/// Replaces this process with another program. The other program then receives the signals and determines the exit code.
///
/// - Returns: the reason if the program cannot be started. If the program starts, this function does not return.
func become(_ path: String, _ arguments: [String]) -> CommandFailure {
    var words: [UnsafeMutablePointer<CChar>?] = ([path] + arguments).map { strdup($0) }
    words.append(nil)
    execv(path, &words)
    return CommandFailure(.unavailable, "\(path) cannot be started: \(String(cString: strerror(errno)))")
}
