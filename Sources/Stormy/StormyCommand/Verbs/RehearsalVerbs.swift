import ArgumentParser
import BackgroundCommands
import BackgroundRuntime
import Foundation

/// `demo` and `rehearse` are a program of their own, `stormy-rehearse`: they bring an HTTP server that nobody needs who only wants to
/// know about storms.
private protocol RehearsalVerb: AsyncParsableCommand, CommandWithEffect {
    var arguments: [String] { get }
}

extension RehearsalVerb {
    var effect: CommandEffect { .ends }

    func run() async throws {
        if arguments == ["--version"] { return Output.line(StormyTool.version) }
        try Self.runElsewhere(arguments)
    }

    static func runElsewhere(_ arguments: [String]) throws {
        let name = configuration.commandName ?? ""
        switch CompanionProgram.find("stormy-rehearse") {
        case .success(let path):
            // It runs the verbs of this very program.
            setenv(CompanionProgram.starterVariable, AppManifest.executableURL.path, 1)
            throw become(path, [name] + arguments)
        case .failure(let missing):
            throw CommandFailure(
                .unavailable,
                "`stormy \(name)` is a program of its own, and \(missing): install it beside stormy, or, in a checkout of the "
                    + "sources, build it with `swift build --product stormy-rehearse`")
        }
    }
}

struct DemoVerb: RehearsalVerb {
    static let configuration = CommandConfiguration(
        commandName: "demo", abstract: "Shows the whole main job in under 30 s, in a throw-away home.",
        discussion: "Example:\n  stormy demo")

    @Argument(parsing: .captureForPassthrough) var arguments: [String] = []
}

struct RehearseVerb: RehearsalVerb {
    static let configuration = CommandConfiguration(
        commandName: "rehearse", abstract: "Runs every way in which work can be cancelled, and prints promised against seen.",
        discussion: "Example:\n  stormy rehearse")

    @Argument(parsing: .captureForPassthrough) var arguments: [String] = []
}

/// Another program takes this process over: signals and exit code are its own.
///
/// - Returns: only where it cannot be started, and then why.
func become(_ path: String, _ arguments: [String]) -> CommandFailure {
    var words: [UnsafeMutablePointer<CChar>?] = ([path] + arguments).map { strdup($0) }
    words.append(nil)
    execv(path, &words)
    return CommandFailure(.unavailable, "\(path) cannot be started: \(String(cString: strerror(errno)))")
}
