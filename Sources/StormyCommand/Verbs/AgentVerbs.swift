import ArgumentParser
import BackgroundLedger
import BackgroundRuntime
import BackgroundTasks
import Foundation
import Glibc
import Stormy

struct AgentVerb: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "agent", abstract: "Runs the agent in the foreground.", discussion: "Example:\n  stormy agent")

    func run() async throws {
        try StormyTool.configure()
        // Where this app is, for the agent to launch.
        _ = try AppRuntime.shared.ledger()
        switch AgentStarter.findAgent(environment: ProcessInfo.processInfo.environment) {
        case .failure(let missing):
            throw CommandFailure(.unavailable, "background-agent was not found in: \(missing.places.joined(separator: ", "))")
        case .success(let path):
            // Becomes the agent: signals and exit code are its own.
            let words = [path, "--app", AppManifest.current.appIdentifier]
            var arguments: [UnsafeMutablePointer<CChar>?] = words.map { strdup($0) }
            arguments.append(nil)
            execv(path, &arguments)
            throw CommandFailure(.unavailable, "\(path) cannot be started: \(String(cString: strerror(errno)))")
        }
    }

    /// Every verb starts an agent that is missing while work is left, but those that are about the agent itself.
    static func startIfWorkIsLeft(after command: any ParsableCommand) {
        if command is AgentVerb || command is QuitVerb || command is DemoVerb { return }
        startIfWorkIsLeft()
    }

    /// For verbs that show whether one runs, or stay.
    static func startIfWorkIsLeft() {
        let runtime = AppRuntime.shared
        guard (try? runtime.ledger().read({ try $0.hasUnfinishedWork() })) == true else { return }
        AgentStarter(directories: runtime.directories).startIfNeeded()
    }
}

struct QuitVerb: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "quit", abstract: "Ends all background work; nothing queued is lost.", discussion: "Example:\n  stormy quit")

    func run() async throws {
        try StormyTool.configure()
        let runtime = AppRuntime.shared
        let ledger = try runtime.ledger()
        let isRunning = AgentStarter(directories: runtime.directories).isRunning
        let store = try StormyStore.open()
        let wasOn = try NoonSchedule(store: store).isEnabled
        try NoonSchedule.setEnabled(false, in: store)
        let (requests, transfers, notices, question) = try ledger.write { transaction in
            let requests = try transaction.deleteAllRequests()
            var transfers = 0
            for var transfer in try transaction.unfinishedTransfers() where transfer.state != .paused {
                transfer.state = .paused
                try transaction.update(transfer)
                transfers += 1
            }
            var notices = 0
            for var notice in try transaction.notifications() {
                switch notice.state {
                case .pending, .presenting, .delivered:
                    notice.state = notice.serverID != nil || notice.state == .presenting ? .withdrawing : .withdrawn
                    notice.endedAt = Date()
                    try transaction.save(notice)
                    notices += 1
                case .closed, .withdrawing, .withdrawn: continue
                }
            }
            return (requests, transfers, notices, isRunning ? try transaction.ask(.quit, now: Date()) : nil)
        }
        AutostartEntry(directories: runtime.directories).remove()
        if wasOn || requests > 0 { Output.line("The daily check is off. `stormy schedule` turns it on again.") }
        if transfers > 0 {
            Output.line("Paused \(transfers) transfer\(transfers == 1 ? "" : "s"). `stormy transfers resume all` goes on.")
        }
        if notices > 0 { Output.line("Withdrew \(notices) notification\(notices == 1 ? "" : "s").") }
        guard question != nil else { return Output.line("No agent was running.") }
        try await waitForEnd()
        Output.line("Stopped the agent.")
    }

    /// The agent's lock goes when it has ended.
    private func waitForEnd() async throws {
        let starter = AgentStarter(directories: AppRuntime.shared.directories)
        let settings = try AppRuntime.shared.ledger().read { try $0.fact(.settings) } ?? AgentSettings()
        let deadline = Date().addingTimeInterval(settings.grace + 10)
        while starter.isRunning {
            guard Date() < deadline else {
                throw CommandFailure(.tryAgain, "the agent has not stopped yet: a launch is still ending")
            }
            try await Task.sleep(for: .milliseconds(20))
        }
    }
}

struct SimulateVerb: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "simulate", abstract: "Launches a pending request now, or ends a running launch's time now.",
        discussion: "Example:\n  stormy simulate launch StormyNoon")

    enum Action: String, ExpressibleByArgument, CaseIterable {
        case launch
        case expire
    }

    @Argument(help: "launch or expire.") var action: Action
    @Argument(help: "The request's identifier, such as StormyNoon.") var identifier: String
    @Flag(help: "Wait until the launch has ended.") var wait = false

    func run() async throws {
        try StormyTool.configure()
        let starter = AgentStarter(directories: AppRuntime.shared.directories)
        if case .forbidden = starter.startIfNeeded() {
            throw CommandFailure(.unavailable, "STORMY_NO_AGENT=1 is set and no agent runs: nobody would answer")
        }
        let last = try AppRuntime.shared.ledger().read { try $0.history(limit: 1).last?.id ?? 0 }
        let scheduler = BGTaskScheduler.shared
        let answer =
            switch action {
            case .launch: try await scheduler.simulateLaunch(forTaskWithIdentifier: identifier)
            case .expire: try await scheduler.simulateExpiration(forTaskWithIdentifier: identifier)
            }
        if answer.hasPrefix("error: ") { throw CommandFailure(.notFound, String(answer.dropFirst("error: ".count))) }
        Output.line(answer)
        guard wait else { return }
        let identifier = identifier
        let outcome = try await AppRuntime.shared.wait { transaction in
            try transaction.history(limit: 50).last {
                $0.identifier == identifier && $0.outcome != nil && $0.simulated && (action == .expire || $0.id! > last)
            }?.outcome
        }
        Output.line(outcome.rawValue)
    }
}
