import ArgumentParser
import BackgroundCommands
import Dispatch
import Foundation
import ProcessSupport

struct DemoCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "demo", abstract: "Shows a check, a storm and a photo upload in under 30 s, in a temporary home.",
        discussion: "Example:\n  stormy demo")

    private static let displaySeconds = 4

    @Option(
        help: ArgumentHelp(
            "Keep the server's log and the received files in this folder.", valueName: "folder"),
        completion: .directory) var evidence: String?

    /// Returns the commands that the demo suggests to the user. If the program is in a build folder, it is not installed yet.
    private static func next(program: String) -> String {
        let isBuilt = program.contains("/.build/")
        let name = isBuilt ? "stormy" : URL(fileURLWithPath: program).lastPathComponent
        return (isBuilt ? "make install PREFIX=$HOME/.local   then   " : "")
            + "\(name) place add Sydney -33.87,151.21 && \(name) schedule"
    }

    func run() async throws {
        let folder = evidence.map { URL(exactPath: $0) }
        let begin = Date()
        // If the demo is interrupted, its files and processes are also removed.
        let interruptions = Cleanup.shared.watchForInterruptions()
        defer { for source in interruptions { source.cancel() } }
        let servers = try await DemoServers.start(evidence: folder)
        let home: ThrowawayHome
        do {
            home = try ThrowawayHome(
                "stormy-demo",
                configuration: ThrowawayHome.configuration(
                    server: servers.url, budget: DemoStory.budget, grace: 2, destination: "demo"))
        } catch {
            await servers.stop()
            throw error
        }
        var story = DemoStory(home: home, servers: servers, evidence: folder)
        do {
            try await story.run()
        } catch {
            story.claims.add("all steps of the demo were completed", false, seen: CommandFailure(error).message)
        }
        if story.isOnDesktop {
            Output.line("   The notification is withdrawn in \(Self.displaySeconds) s.")
            try? await Task.sleep(for: .seconds(Self.displaySeconds))
        }
        Output.line(Output.bold("6. Everything is removed"))
        story.claims.add("the agent and the temporary home were removed", home.finish())
        await servers.stop()
        let held = story.claims.lines.filter(\.held).count
        Output.line()
        Output.line("\(held) of \(story.claims.lines.count) passed in \(Int(Date().timeIntervalSince(begin).rounded())) s.")
        if !story.claims.allHeld { throw ExitCode(1) }
        Output.line("To use Stormy: " + Self.next(program: home.program))
    }
}
