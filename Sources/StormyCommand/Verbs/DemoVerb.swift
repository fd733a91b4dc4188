import ArgumentParser
import BackgroundCommands
import Dispatch
import Foundation
import Glibc

struct DemoVerb: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "demo", abstract: "Shows the whole main job in under 30 s, in a throw-away home.",
        discussion: "Example:\n  stormy demo")

    private static let lookingTime = 4

    @Option(
        help: ArgumentHelp(
            "Keep the server's log and what it received in this folder.", valueName: "folder"),
        completion: .directory) var evidence: String?

    func run() async throws {
        let folder = evidence.map { URL(fileURLWithPath: $0) }
        let begin = Date()
        let servers = try await DemoServers.start(evidence: folder)
        let home = try ThrowawayHome(
            "stormy-demo",
            configuration: ThrowawayHome.configuration(
                server: servers.url, budget: DemoStory.budget, grace: 2, destination: "demo"))
        // Interrupted half-way it still takes everything away.
        let interrupts = [SIGINT, SIGTERM, SIGHUP].map { number in
            signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number, queue: DispatchQueue(label: "interrupt"))
            source.setEventHandler { @Sendable in
                _ = home.leave()
                Foundation.exit(128 + number)
            }
            source.activate()
            return source
        }
        defer { for source in interrupts { source.cancel() } }
        var story = DemoStory(home: home, servers: servers, evidence: folder)
        do {
            try await story.tell()
        } catch {
            story.claims.add("the story came to its end", false, seen: CommandFailure(ofStormy: error).message)
        }
        if story.isOnDesktop {
            Output.line("   Look at it; it is withdrawn in \(Self.lookingTime) s.")
            try? await Task.sleep(for: .seconds(Self.lookingTime))
        }
        Output.line(Output.bold("6. Nothing stays"))
        story.claims.add("the agent is gone, and the throw-away home", home.leave())
        await servers.stop()
        let held = story.claims.lines.filter(\.held).count
        Output.line()
        Output.line("\(held) of \(story.claims.lines.count) held, in \(Int(Date().timeIntervalSince(begin).rounded())) s.")
        if !story.claims.allHeld { throw ExitCode(1) }
    }
}
