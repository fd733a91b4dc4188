import ArgumentParser
import BackgroundCommands
import BackgroundRuntime
import BackgroundTasks
import Foundation
import Stormy

struct AgentVerb: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "agent", abstract: "Runs the agent in the foreground.", discussion: "Example:\n  stormy agent")

    func run() async throws {
        try StormyTool.configure()
        // Where this app is, for the agent to launch.
        try AppRuntime.shared.introduceApp()
        switch AgentStarter.findAgent(environment: ProcessInfo.processInfo.environment) {
        case .failure(let missing):
            throw CommandFailure(.unavailable, "\(missing)")
        case .success(let path):
            throw become(path, ["--app", AppManifest.current.appIdentifier])
        }
    }

    /// Every verb starts an agent that is missing while work is left, but those that are about the agent itself.
    static func startIfWorkIsLeft(after command: any ParsableCommand) {
        if command is AgentVerb || command is QuitVerb || command is DemoVerb || command is RehearseVerb { return }
        startIfWorkIsLeft()
    }

    /// For verbs that show whether one runs, or stay.
    static func startIfWorkIsLeft() {
        AppRuntime.shared.startAgentIfWorkIsLeft()
    }
}

struct QuitVerb: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "quit", abstract: "Ends all background work; nothing queued is lost.", discussion: "Example:\n  stormy quit")

    func run() async throws {
        try StormyTool.configureIfPossible()
        let store = try StormyStore.open()
        let wasOn = try NoonSchedule(store: store).isEnabled
        // First, or a check that runs just now would plan the next one.
        try NoonSchedule.setEnabled(false, in: store)
        var isOff = false
        do {
            try await QuitCommand.endAll { requests, transfers in
                isOff = true
                if wasOn || requests > 0 { Output.line("The daily check is off. `stormy schedule` turns it on again.") }
                if transfers > 0 {
                    Output.line(
                        "Paused \(transfers) transfer\(transfers == 1 ? "" : "s"). `stormy transfers resume all` goes on.")
                }
            }
        } catch {
            // Nothing was ended: then the check is on as before.
            if wasOn, !isOff {
                do {
                    try NoonSchedule.setEnabled(true, in: store)
                } catch {
                    Output.note("stormy: the daily check is off all the same: \(CommandFailure(ofStormy: error).message)")
                }
            }
            throw error
        }
    }
}
