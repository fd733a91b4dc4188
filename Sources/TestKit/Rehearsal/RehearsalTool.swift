import ArgumentParser
import BackgroundCommands
import Foundation
import Glibc
import ProcessSupport

/// The executable `stormy-rehearse`, which `stormy demo` and `stormy rehearse` start.
public enum RehearsalTool {
    public static func main() -> Never {
        // If the reader closes the pipe, writes fail with an error that the code handles. Without this line, the process would be
        // killed.
        signal(SIGPIPE, SIG_IGN)
        Task { ProcessExit.end(await CommandRunner.run(RehearsalRoot.self, Array(ThisProcess.arguments.dropFirst()))) }
        dispatchMain()
    }
}

/// The root command. The help of this command contains the name `stormy`, because users type that name.
private struct RehearsalRoot: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "stormy", abstract: "Demonstrates and tests Stormy with real servers, in temporary homes.",
        subcommands: [DemoCommand.self, RehearseCommand.self])
}
