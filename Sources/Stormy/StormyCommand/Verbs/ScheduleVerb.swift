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
        commandName: "schedule", abstract: "Turns the daily check on, at noon or at the time that was used last.",
        discussion: """
            With --wake the machine is woken from sleep for the check. The machine sleeps again at most 20 s after the check, \
            if you do not use it. On battery, the machine is woken only with a charge of at least 30 %. `stormy doctor` shows what is \
            missing on this machine.

            Example:
              stormy schedule --at 12:00
              stormy schedule --wake
            """)

    @Option(help: "The time of day: HH:MM, HH:MM:SS, 7, 7pm or noon.") var at: String?
    @Flag(help: "Run the check exactly at this time, without the small delay that protects public services.") var exact = false
    @Flag(inversion: .prefixedNo, help: "Wake the machine from sleep for the check, if this system allows it.") var wake: Bool?
    @Flag(help: "Print JSON.") var json = false

    func run() async throws {
        try StormyTool.configure()
        // The ledger is opened before anything is written, so that a damaged or newer ledger is reported with its exit code.
        try AppRuntime.shared.introduceApp()
        var time: WallClockTime?
        if let at {
            guard let parsed = WallClockTime(typed: at) else {
                throw CommandFailure(
                    .badData,
                    "\"\(at)\" is not a valid time of day: expected HH:MM or HH:MM:SS, for example 12:00, or 7pm, or noon")
            }
            time = parsed
        }
        let store = try StormyStore.open()
        let schedule = NoonSchedule(store: store)
        // The autostart is installed first, so that systemd's user manager can start the agent for the request. Some machines
        // have no user manager.
        let trouble = installAutostart()
        try schedule.turnOn(at: time, exact: exact, wakesSystem: wake)
        let summary = try StatusReport.schedule(store)
        if json {
            try Output.json(summary)
            if let trouble { throw trouble }
            return
        }
        if let next = summary.next.value { Output.line("Next check: \(Output.moment(next)).") }
        if let wake = summary.wakeAt.value, let next = summary.next.value, wake.timeIntervalSince(next) >= 1 {
            Output.line(
                "On this computer the check runs \(Output.duration(Int(wake.timeIntervalSince(next)))) later, "
                    + "so that not all users send requests at the same time (the option --exact turns the delay off)."
            )
        }
        if summary.wakesSystem {
            Output.line(
                "The machine is woken from sleep for the check, if this system allows this. For details, run: stormy why StormyNoon"
            )
        }
        if try store.places().isEmpty { Output.note("No place is configured. Add a place: stormy place add NAME [LAT,LON]") }
        if let trouble { throw trouble }
    }

    /// Installs the autostart. Returns the reason if the agent will not start at the next login, otherwise `nil`.
    private func installAutostart() -> CommandFailure? {
        let environment = ThisProcess.environment
        switch AgentStarter.findAgent(environment: environment) {
        case .failure:
            return CommandFailure(
                .unavailable,
                "background-agent was not found next to stormy or in PATH, so checks run only if you start the agent yourself")
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
        // The autostart is removed only if all transfers have ended, because unfinished transfers still need the agent after the
        // next login.
        if try BackgroundTransfers.all().allSatisfy(\.state.hasEnded) {
            AutostartEntry(directories: AppRuntime.shared.directories).remove()
        }
        Output.line("The daily check is off. `stormy schedule` turns the check on again.")
    }
}

extension WallClockTime {
    /// A time of day as people type it: "12:00", "7:30:15", "7", "7pm", "7:30 am", "noon" or "midnight". `nil` for other text.
    init?(typed text: String) {
        let text = text.trimmingCharacters(in: .whitespaces).lowercased()
        switch text {
        case "noon": self = .noon
        case "midnight": self.init(parsing: "00:00")
        default:
            let isAfternoon = text.hasSuffix("pm")
            guard isAfternoon || text.hasSuffix("am") else {
                self.init(parsing: Int(text) == nil ? text : text + ":00")
                return
            }
            let parts = text.dropLast(2).trimmingCharacters(in: .whitespaces).split(separator: ":", maxSplits: 1)
            guard let first = parts.first, let hour = Int(first), (1...12).contains(hour) else { return nil }
            let rest = parts.count > 1 ? String(parts[1]) : "00"
            self.init(parsing: "\(hour % 12 + (isAfternoon ? 12 : 0)):\(rest)")
        }
    }
}
