import ArgumentParser
import BackgroundCommands
import BackgroundRuntime
import Foundation
import Stormy
import StormyWeather

struct StatusVerb: AsyncParsableCommand, CommandWithEffect {
    var effect: CommandEffect { .summarizes }

    static let configuration = CommandConfiguration(
        commandName: "status", abstract: "Shows the next check, the last results, storms and transfers.",
        discussion: "Example:\n  stormy status --json")

    @Flag(help: "Print JSON.") var json = false
    @Flag(help: "Keep running, and show the status again after each change.") var watch = false

    func run() async throws {
        try StormyTool.configure()
        let store = try watch ? StormyStore.open() : StormyStore.toRead()
        // The daily check and the agent are restored before their states are shown.
        AgentVerb.restoreLostCheck()
        AgentVerb.startIfWorkIsLeft()
        guard watch else { return try show(store) }
        try await store.showAgainOnChanges { try show(store) }
    }

    private func show(_ store: StormyStore) throws {
        let report = try StatusReport.make(store)
        if json { return try Output.json(report) }
        printForPeople(report)
        let photos = try TransferReport.all(store)
        for photo in photos where photo.state == "awaitingPhoto" {
            Output.line("Photo       request \(photo.id) waits for a photo. Add a photo: stormy upload FILE")
        }
        let held = photos.filter { $0.state == "held" }.count
        if held > 0 { Output.line("Photos      \(held) held back. For the reasons, run: stormy transfers") }
    }

    /// A label in the first column, at least 12 characters wide.
    private static func label(_ text: String) -> String {
        text.padding(toLength: max(12, text.count + 2), withPad: " ", startingAt: 0)
    }

    private func printForPeople(_ report: StatusReport) {
        if let next = report.schedule.moment {
            Output.line(
                "Next check  \(Output.bold(Output.moment(next))), daily at \(report.schedule.at) \(report.schedule.timeZone)"
                    + (report.schedule.wakesSystem ? "; wakes the machine" : ""))
        } else {
            Output.line("Next check  not scheduled. To schedule the check, run: stormy schedule")
        }
        for check in report.checks {
            let verdict = check.stormy.value.map { $0 ? Output.loud("stormy") : "calm" } ?? "unknown"
            Output.line(
                "\(Self.label(check.place))\(verdict), checked \(Output.relative(check.at))"
                    + (check.trouble.value.map { " (not refreshed: \($0))" } ?? ""))
            for reason in check.notAnswered { Output.line("  Not used: \(reason)") }
            for hours in check.unknownHours {
                Output.line(
                    "  The weather is not known: no service has all values from \(Output.moment(hours.from)), for \([hours].hourCount) h"
                )
            }
            for reason in check.reasons { Output.line("  \(reason.words), \(Output.moment(reason.from))") }
        }
        for storm in report.storms {
            let identifier = StormNotifier.identifier(ofStorm: storm.id)
            let told =
                report.notifications.hidden.contains(identifier)
                ? "the notification is hidden, because do not disturb is on"
                : report.notifications.waiting.contains(identifier)
                    ? "the notification waits to be shown" : storm.told ? "shown" : "not shown yet"
            Output.line("Storm at \(storm.place), from \(Output.moment(storm.from)), \(told)")
        }
        let moving = report.transfers.filter { $0.value > 0 && $0.key != "completed" }.sorted { $0.key < $1.key }
        if !moving.isEmpty { Output.line("Transfers   " + moving.map { "\($0.value) \($0.key)" }.joined(separator: ", ")) }
        let isListed = UnseenNotifications.list()
        if report.notifications.pending > 0, !isListed {
            Output.line(
                "Notifications  \(report.notifications.pending) waiting"
                    + (report.notifications.trouble.value.map { ": \($0)" } ?? ""))
        }
        Output.line(report.agent.line)
    }
}
