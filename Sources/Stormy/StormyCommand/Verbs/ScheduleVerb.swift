import ArgumentParser
import BackgroundCommands
import BackgroundRuntime
import BackgroundTasks
import BackgroundTransfer
import Foundation
import ProcessSupport
import Stormy

struct ScheduleVerb: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "schedule", abstract: "Turns the daily check on: at noon, or at the time that was given last.",
        discussion: """
            With --wake a machine that sleeps is woken for the check, and sleeps again when it is done and nobody came: at most 20 s later, and never \
            on a battery with less than 30 %. `stormy doctor` says what it lacks for that.

            Example:
              stormy schedule --at 12:00
              stormy schedule --wake
            """)

    @Option(help: "Time of day, HH:MM or HH:MM:SS.") var at: String?
    @Flag(help: "At that second, without the small offset that is kind to public services.") var exact = false
    @Flag(inversion: .prefixedNo, help: "Wake the machine for it, where that may be.") var wake: Bool?
    @Flag(help: "Print JSON.") var json = false

    func run() async throws {
        try StormyTool.configure()
        // Before anything is written: a damaged or newer ledger is said as such, by its own exit code.
        try AppRuntime.shared.introduceApp()
        var time: WallClockTime?
        if let at {
            guard let parsed = WallClockTime(parsing: at) else {
                throw CommandFailure(.badData, "\"\(at)\" is not a time of day: use HH:MM or HH:MM:SS, such as 12:00")
            }
            time = parsed
        }
        let store = try StormyStore.open()
        let schedule = NoonSchedule(store: store)
        // First, so that the agent which the request starts is the user manager's, where there is one.
        let trouble = installAutostart()
        try schedule.turnOn(at: time, exact: exact, wakesSystem: wake)
        let summary = try StatusReport.schedule(store)
        if json {
            try Output.json(summary)
            if let trouble { throw trouble }
            return
        }
        if let next = summary.next.value { Output.line("The next check is at \(Output.moment(next)).") }
        if let wake = summary.wakeAt.value, let next = summary.next.value, wake.timeIntervalSince(next) >= 1 {
            Output.line(
                "This machine wakes \(Output.duration(Int(wake.timeIntervalSince(next)))) later, so that not everybody asks at once (--exact turns that off)."
            )
        }
        if summary.wakesSystem { Output.line("A machine that sleeps is woken for it, where that may be: stormy why StormyNoon") }
        if try store.places().isEmpty { Output.note("No place yet: stormy place add NAME [LAT,LON]") }
        if let trouble { throw trouble }
    }

    /// Returns what kept the agent from being started at the next login, if anything.
    private func installAutostart() -> CommandFailure? {
        let environment = ThisProcess.environment
        switch AgentStarter.findAgent(environment: environment) {
        case .failure:
            return CommandFailure(
                .unavailable,
                "background-agent was not found beside stormy or in PATH: checks run only while it is started by hand")
        case .success(let agent):
            do {
                _ = try AutostartEntry(directories: AppRuntime.shared.directories)
                    .install(agent: agent, displayName: AppManifest.current.displayName)
                return nil
            } catch {
                return CommandFailure(.cannotCreate, "the agent will not start at the next login: \(error)")
            }
        }
    }
}

struct UnscheduleVerb: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "unschedule", abstract: "Turns the daily check off.", discussion: "Example:\n  stormy unschedule")

    func run() async throws {
        try StormyTool.configureIfPossible()
        try NoonSchedule(store: try StormyStore.open()).turnOff()
        // What is still to be sent or fetched brings the agent back, too.
        if try BackgroundTransfers.all().allSatisfy(\.state.hasEnded) {
            AutostartEntry(directories: AppRuntime.shared.directories).remove()
        }
        Output.line("The daily check is off. `stormy schedule` turns it on again.")
    }
}
