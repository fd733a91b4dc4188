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
        // This command runs at login. The agent must start even after an error in this command, and then reports the problem.
        do {
            try StormyTool.configureIfPossible()
            // Stores the location of this app in the ledger, because the agent launches the app.
            try AppRuntime.shared.introduceApp()
            // This process becomes the agent, so the call that schedules the daily check must not start another agent.
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

    /// Starts an agent if some work is unfinished and no agent is running, unless the command must not start an agent.
    static func startIfWorkIsLeft(after command: any ParsableCommand) {
        if let command = command as? any CommandWithEffect, !command.effect.startsAgent { return }
        restoreLostCheck()
        startIfWorkIsLeft()
    }

    /// Schedules the daily check again if only the store contains the check, for example because the ledger was moved away or
    /// restored from a backup.
    static func restoreLostCheck() {
        let file = AppRuntime.shared.directories.data.appendingPathComponent(StormyStore.fileName)
        guard StormySettings.areSet, FileManager.default.fileExists(atPath: file.path),
            !AppRuntime.shared.hasLedgerInMemory
        else { return }
        do {
            let store = try StormyStore.open()
            if try NoonSchedule(store: store).restoreIfLost() {
                Output.note("stormy: the daily check was scheduled again, because the agent had no request for it")
            }
            if try WatchedFolders(store: store).restoreIfLost() {
                Output.note("stormy: the folders are watched again, because the agent had no request for them")
            }
        } catch {
            // The command itself has reported the problem of the store, or does not need the store.
        }
    }

    /// Starts an agent for commands that show whether an agent is running, or for commands that continue to run.
    static func startIfWorkIsLeft() {
        AppRuntime.shared.startAgentIfWorkIsLeft()
    }
}

struct QuitVerb: AsyncParsableCommand, CommandWithEffect {
    var effect: CommandEffect { .ends }

    static let configuration = CommandConfiguration(
        commandName: "quit", abstract: "Ends all background work. Queued transfers are paused, not deleted.",
        discussion: "Example:\n  stormy quit")

    func run() async throws {
        try StormyTool.configureIfPossible()
        let store = try StormyStore.open()
        let wasOn = try NoonSchedule(store: store).isEnabled
        // The check is turned off first, because a running check would schedule the next check. If the store cannot be written,
        // the other background work is still ended.
        let hasFolders = try !store.folderWatches().isEmpty && WatchedFolders(store: store).areOn
        let noted = Result {
            try NoonSchedule.setEnabled(false, in: store)
            if hasFolders { try WatchedFolders.turnOff(in: store) }
        }
        var isOff = false
        do {
            try await QuitCommand.endAll { requests, transfers in
                isOff = true
                if hasFolders {
                    Output.line("The folders are not watched. `stormy watch add FOLDER` watches all folders of the list again.")
                }
                if wasOn || requests > 0 && !hasFolders {
                    Output.line("The daily check is off. `stormy schedule` turns the check on again.")
                }
                if transfers > 0 {
                    let noun = transfers == 1 ? "transfer" : "transfers"
                    Output.line("Paused \(transfers) \(noun). `stormy transfers resume all` continues all paused transfers.")
                }
            }
        } catch {
            // The command could not end the background work, so the daily check is turned on again.
            if wasOn, !isOff {
                do {
                    try NoonSchedule.setEnabled(true, in: store)
                } catch {
                    Output.note(
                        "stormy: the daily check is off, although an error occurred: \(CommandFailure(ofStormy: error).message)")
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
                "all work has ended, but the next command schedules the daily check again, because the change could not be stored: \(failure.message)"
            )
        }
    }
}
