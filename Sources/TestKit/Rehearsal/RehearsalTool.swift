import ArgumentParser
import BackgroundCommands
import Foundation
import Glibc
import ProcessSupport

/// The executable `stormy-rehearse`, which `stormy demo` and `stormy rehearse` start.
public enum RehearsalTool {
    public static func main() -> Never {
        // A reader that leaves is an error to be handled, not an end in mid-work.
        signal(SIGPIPE, SIG_IGN)
        Task { ProcessExit.leave(await CommandRunner.run(RehearsalRoot.self, Array(ThisProcess.arguments.dropFirst()))) }
        dispatchMain()
    }
}

/// Its help speaks of `stormy`, which is what a person types.
private struct RehearsalRoot: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "stormy", abstract: "Stormy shown and rehearsed, beside real servers, in throw-away homes.",
        subcommands: [DemoCommand.self, RehearseCommand.self])
}
