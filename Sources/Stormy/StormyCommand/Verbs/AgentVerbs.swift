import ArgumentParser
import BackgroundCommands
import BackgroundRuntime
import BackgroundTasks
import Foundation
import ProcessSupport
import Stormy

struct AgentVerb: AsyncParsableCommand, CommandWithEffect {
    var effect: CommandEffect { .ends }

    static let configuration = CommandConfiguration(
        commandName: "agent", abstract: "Runs the agent in the foreground.", discussion: "Example:\n  stormy agent")

    func run() async throws {
        // The person's login runs this: whatever is wrong here, an agent there must be, which says the rest.
        do {
            try StormyTool.configureIfPossible()
            // Where this app is, for the agent to launch.
            try AppRuntime.shared.introduceApp()
            // This process becomes the agent: what it plans starts no other.
            let variable = AgentStarter(directories: AppRuntime.shared.directories).forbiddingVariable
            let isForbidden = getenv(variable) != nil
            setenv(variable, "1", 0)
            Self.restoreLostCheck()
            if !isForbidden { unsetenv(variable) }
        } catch {
            Output.note("stormy: \(CommandFailure(ofStormy: error).message)")
        }
        switch AgentStarter.findAgent(environment: ThisProcess.environment) {
        case .failure(let missing):
            throw CommandFailure(.unavailable, "\(missing)")
        case .success(let path):
            throw become(path, ["--app", AppManifest.current.appIdentifier])
        }
    }

    /// Starts an agent that is missing while work is left, unless the command forbids it.
    static func startIfWorkIsLeft(after command: any ParsableCommand) {
        if let command = command as? any CommandWithEffect, !command.effect.startsAgent { return }
        restoreLostCheck()
        startIfWorkIsLeft()
    }

    /// A ledger that was moved away, or comes from a backup, does not know of the daily check; Stormy's own store does.
    static func restoreLostCheck() {
        let file = AppRuntime.shared.directories.data.appendingPathComponent(StormyStore.fileName)
        guard StormySettings.areSet, FileManager.default.fileExists(atPath: file.path),
            !AppRuntime.shared.hasLedgerInMemory
        else { return }
        do {
            if try NoonSchedule(store: StormyStore.open()).restoreIfLost() {
                Output.note("stormy: the daily check is planned again: the agent did not know of it any more")
            }
        } catch {
            // The verb itself has said what is wrong with the store, or does not need it.
        }
    }

    /// For verbs that show whether one runs, or stay.
    static func startIfWorkIsLeft() {
        AppRuntime.shared.startAgentIfWorkIsLeft()
    }
}

struct QuitVerb: AsyncParsableCommand, CommandWithEffect {
    var effect: CommandEffect { .ends }

    static let configuration = CommandConfiguration(
        commandName: "quit", abstract: "Ends all background work; nothing queued is lost.", discussion: "Example:\n  stormy quit")

    func run() async throws {
        try StormyTool.configureIfPossible()
        let store = try StormyStore.open()
        let wasOn = try NoonSchedule(store: store).isEnabled
        // First, or a check that runs just now would plan the next one. All the rest ends also where that cannot be written.
        let noted = Result { try NoonSchedule.setEnabled(false, in: store) }
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
        do {
            try noted.get()
        } catch {
            let failure = CommandFailure(ofStormy: error)
            throw CommandFailure(
                failure.status,
                "all work is ended, but the next verb plans the daily check again, as that could not be written down: \(failure.message)"
            )
        }
    }
}
