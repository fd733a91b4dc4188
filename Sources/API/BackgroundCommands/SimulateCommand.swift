import ArgumentParser
import BackgroundLedger
import BackgroundRuntime
import BackgroundTasks
import Foundation

/// The command `simulate`, which launches a pending request, or ends a running launch as if its time limit was reached.
public struct SimulateCommand: BackgroundCommand {
    public static let configuration = describe(
        "simulate", "Launches the app now for a pending request, or ends a running launch.",
        example: "simulate launch \(AppManifest.current.permittedIdentifiers.first ?? "IDENTIFIER")")

    enum Action: String, ExpressibleByArgument, CaseIterable {
        case launch
        case expire
    }

    @Argument(help: "The action: launch (launches the app for a request) or expire (ends a launch, as at its time limit).")
    var action: Action
    @Argument(help: "The identifier of the request. The command `why` lists the identifiers.", completion: .requests)
    var identifier: String
    @Flag(help: "Wait until the launch has ended. The exit code is 75 if the launch did not complete.") var wait = false

    public init() {}

    public func perform() async throws {
        let starter = AgentStarter(directories: AppRuntime.shared.directories)
        switch AppRuntime.shared.startAgent() {
        case .alreadyRunning, .started: break
        case .forbidden:
            throw CommandFailure(
                .unavailable, "no agent runs, and \(starter.forbiddingVariable)=1 prevents the start of an agent")
        case .notFound(let places):
            let folders = places.joined(separator: ", ")
            throw CommandFailure(.unavailable, "background-agent was not found in: \(folders)")
        case .failed(let reason): throw CommandFailure(.unavailable, "no agent could be started: \(reason)")
        }
        let (identifier, action) = (identifier, action)
        // With the action `expire`, the command waits for the launch that is running now. With the action `launch`, the command
        // waits for a launch that begins after this read of the ledger.
        let (last, live) = try AppRuntime.shared.ledger().read { transaction in
            (
                try transaction.history(limit: 1).last?.id ?? 0,
                try transaction.liveLaunches().last { $0.identifier == identifier }?.id
            )
        }
        let scheduler = BGTaskScheduler.shared
        let answer =
            switch action {
            case .launch: try await scheduler.simulateLaunch(forTaskWithIdentifier: identifier)
            case .expire: try await scheduler.simulateExpiration(forTaskWithIdentifier: identifier)
            }
        if answer.hasPrefix("error: ") {
            let status: ExitStatus = answer.hasSuffix("is pending") || answer.hasSuffix("is running") ? .notFound : .tryAgain
            throw CommandFailure(status, String(answer.dropFirst("error: ".count)))
        }
        Output.line(answer)
        guard wait else { return }
        let outcome = try await AppRuntime.shared.waitForAgent { transaction in
            try transaction.history(limit: 50).last {
                $0.identifier == identifier && (action == .expire ? $0.id == live : $0.simulated && $0.id! > last)
            }?.outcome
        }
        Output.line(outcome.rawValue)
        guard outcome == .completed || action == .expire && outcome == .expired else {
            throw CommandFailure(.tryAgain, "The launch of \(identifier) did not complete: \(outcome.rawValue).")
        }
    }
}
