import ArgumentParser
import BackgroundCommands
import BackgroundRuntime
import Foundation
import Stormy
import StormyWeather

struct StatusVerb: AsyncParsableCommand, CommandWithEffect {
    var effect: CommandEffect { .summarizes }

    static let configuration = CommandConfiguration(
        commandName: "status", abstract: "What is scheduled, and what happened last.",
        discussion: "Example:\n  stormy status --json")

    @Flag(help: "Print JSON.") var json = false
    @Flag(help: "Stay, and show it again whenever something changes.") var watch = false

    func run() async throws {
        try StormyTool.configure()
        let store = try watch ? StormyStore.open() : StormyStore.toRead()
        // Before it is asked what is planned, and whether an agent runs.
        AgentVerb.restoreLostCheck()
        AgentVerb.startIfWorkIsLeft()
        try show(store)
        guard watch else { return }
        let (rings, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        // Of the ledger, and of the store.
        let token = try AppRuntime.shared.onCommit { continuation.yield() }
        let looks = Task {
            do { for try await _ in store.looks() { continuation.yield() } } catch {
                Output.note("stormy: \(CommandFailure(ofStormy: error).message)")
            }
        }
        let retry = ReadRetry()
        for await _ in rings {
            // The bell rings slightly before what was written can be read. If that takes too long, what can be read is shown first.
            do {
                try AppRuntime.shared.ledger().readAfterRing { _ in }
                retry.succeeded()
            } catch {
                retry.failed { continuation.yield() }
            }
            Output.clearScreen()
            try show(store)
        }
        token.cancel()
        looks.cancel()
    }

    private func show(_ store: StormyStore) throws {
        let report = try StatusReport.make(store)
        if json { return try Output.json(report) }
        printForPeople(report)
        let photos = try TransferReport.all(store)
        for photo in photos where photo.state == "awaitingPhoto" {
            Output.line("Photo job \(photo.id) waits for a photo: stormy upload FILE")
        }
        let held = photos.filter { $0.state == "held" }.count
        if held > 0 { Output.line("\(held) photo\(held == 1 ? " is" : "s are") held back: stormy transfers says why") }
    }

    private func printForPeople(_ report: StatusReport) {
        if let next = report.schedule.moment {
            Output.line(
                "Next check  \(Output.bold(Output.moment(next))), daily at \(report.schedule.at) \(report.schedule.timeZone)"
                    + (report.schedule.wakesSystem ? "; wakes the machine" : ""))
        } else {
            Output.line("Next check  none: stormy schedule")
        }
        for check in report.checks {
            let verdict = check.stormy.value.map { $0 ? Output.loud("stormy") : "calm" } ?? "unknown"
            Output.line(
                "\(check.place)  \(verdict), checked \(Output.relative(check.at))"
                    + (check.trouble.value.map { " (not refreshed: \($0))" } ?? ""))
            for reason in check.notAnswered { Output.line("  Not used: \(reason)") }
            for hours in check.unknownHours {
                Output.line(
                    "  Not known: no service has all values from \(Output.moment(hours.from)), for \([hours].hourCount) h")
            }
            for reason in check.reasons { Output.line("  \(reason.words), \(Output.moment(reason.from))") }
        }
        for storm in report.storms {
            let identifier = StormTeller.identifier(ofStorm: storm.id)
            let told =
                report.notifications.hidden.contains(identifier)
                ? "not seen: do not disturb is on"
                : report.notifications.waiting.contains(identifier)
                    ? "its notification waits to be shown" : storm.told ? "told" : "not told yet"
            Output.line("Storm at \(storm.place)  from \(Output.moment(storm.from)), \(told)")
        }
        let moving = report.transfers.filter { $0.value > 0 && $0.key != "completed" }.sorted { $0.key < $1.key }
        if !moving.isEmpty { Output.line("Transfers   " + moving.map { "\($0.value) \($0.key)" }.joined(separator: ", ")) }
        UnseenNotifications.list()
        if report.notifications.pending > 0 {
            Output.line(
                "Notifications  \(report.notifications.pending) waiting"
                    + (report.notifications.trouble.value.map { ": \($0)" } ?? ""))
        }
        Output.line(report.agent.line)
    }
}
