import ArgumentParser
import BackgroundCommands
import BackgroundRuntime
import Foundation
import ProcessSupport
import Stormy
import StormyWeather

struct ForecastVerb: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "forecast",
        abstract: "Shows the forecast of the next hours as a plot in the terminal, or as a picture.",
        discussion: "Example:\n  stormy forecast Sydney --svg sydney.svg")

    @Argument(help: "The name of one place. Default: all places.", completion: .places) var name: String?
    @Flag(help: "Use the stored forecast only.") var offline = false
    @Option(help: "The number of hours, 1 to 72.") var hours = 24
    @Option(
        help: ArgumentHelp("Write the forecast of one place as an SVG picture into this file.", valueName: "file"),
        completion: .file())
    var svg: String?
    @Option(
        help: ArgumentHelp("Write the forecast of one place as a PNG picture into this file.", valueName: "file"),
        completion: .file())
    var png: String?
    @Flag(help: "Print JSON.") var json = false

    private struct Row: Encodable {
        struct Hour: Encodable {
            let start: Date
            let rainMM: OrNull<Double>
            let gustsKMH: OrNull<Double>
            let temperatureC: OrNull<Double>
            let stormy: Bool
        }

        let place: String
        let source: String
        let fetchedAt: OrNull<Date>
        let stale: Bool
        /// Values of the service that cannot be read. In ``hours``, these values are `null`.
        let unreadable: [StormValue]
        let hours: [Hour]
    }

    func validate() throws {
        guard (1...72).contains(hours) else { throw ValidationError("--hours expects a number from 1 to 72") }
        if svg != nil || png != nil, json { throw ValidationError("--svg and --png cannot be used with --json") }
    }

    func run() async throws {
        try StormyTool.configure()
        let store = try offline ? StormyStore.toRead() : StormyStore.open()
        let places = try PlaceVerb.places(named: name, in: store)
        guard svg == nil && png == nil || places.count == 1 else {
            throw CommandFailure(.usage, "a picture shows one place only: stormy forecast \(places[0].name) --svg FILE")
        }
        let outcomes = try await AutoOpen(
            store, places: places.map(\.name), offline ? .never : .always, timeout: CheckVerb.patience
        ).opened().outcomes
        if json {
            try Output.json(outcomes.map(row))
        } else if svg != nil || png != nil, let outcome = outcomes.first {
            let picture = try picture(outcome)
            if let svg { try write(Data(picture.svg.utf8), to: svg) }
            if let png { try write(try drawn(picture), to: png) }
        } else {
            for (index, outcome) in outcomes.enumerated() { print(outcome, isFirst: index == 0) }
        }
        if outcomes.allSatisfy({ $0.forecast == nil }) {
            throw ExitCode(offline ? ExitStatus.notFound.rawValue : ExitStatus.unavailable.rawValue)
        }
    }

    private func plotted(_ outcome: CheckOutcome) -> PlottedHours? {
        outcome.forecast.map {
            PlottedHours(
                $0, outcome.assessment, rule: StormySettings.current.rule, now: AppRuntime.shared.now, count: hours,
                timeZone: outcome.place.zone, locale: UserLocale.current, units: .ofPerson)
        }
    }

    private func row(_ outcome: CheckOutcome) -> Row {
        Row(
            place: outcome.place.name, source: outcome.source, fetchedAt: OrNull(outcome.fetchedAt), stale: outcome.isStale,
            unreadable: outcome.forecast?.unreadable ?? [],
            hours: (plotted(outcome)?.hours ?? []).map { hour in
                Row.Hour(
                    start: hour.start, rainMM: OrNull(hour.rainMM), gustsKMH: OrNull(hour.gustsKMH),
                    temperatureC: OrNull(hour.temperatureC), stormy: hour.mark == .storm)
            })
    }

    private func print(_ outcome: CheckOutcome, isFirst: Bool) {
        if !isFirst { Output.line("") }
        Output.line(CheckVerb.line(outcome) + (outcome.assessment?.isStormy == false ? "." : ""))
        if let plotted = plotted(outcome) {
            let zone =
                outcome.place.zone.identifier == AppRuntime.shared.zone.identifier
                ? "" : " (hours of \(outcome.place.zone.identifier))"
            Output.line("The next \(plotted.hours.count) hours\(zone):")
            for line in ForecastPlot(plotted, columns: Self.columns, style: Self.style).lines { Output.line(line) }
        }
        for reason in outcome.notAnswered { Output.note("  Not used: \(reason)") }
        if let trouble = outcome.trouble { Output.note("  Not refreshed: \(trouble)") }
        if let fetchedAt = outcome.fetchedAt {
            Output.line("Forecast of \(outcome.source), \(Output.relative(fetchedAt, now: AppRuntime.shared.now)).")
        }
    }

    private func picture(_ outcome: CheckOutcome) throws -> ForecastPicture {
        guard let plotted = plotted(outcome) else {
            throw CommandFailure(
                .unavailable, "\(outcome.place.name): no forecast: \(outcome.trouble ?? "no forecast is stored")")
        }
        let age = outcome.fetchedAt.map { ", " + Output.relative($0, now: AppRuntime.shared.now) } ?? ""
        return ForecastPicture(
            plotted, title: outcome.place.name, summary: CheckVerb.words(outcome), source: outcome.source + age)
    }

    private func drawn(_ picture: ForecastPicture) throws -> Data {
        do { return try CairoPicture.png(of: picture) } catch { throw CommandFailure(.unavailable, "\(error)") }
    }

    private func write(_ picture: Data, to path: String) throws {
        try OwnFiles.refuse(PathName.absolute(path))
        try Output.file(picture, to: path)
        Output.line(path)
    }
}

// MARK: - The terminal

extension ForecastVerb {
    /// The number of columns, or 80 if the number is unknown.
    private static var columns: Int {
        Terminal.columns(of: STDOUT_FILENO) ?? ThisProcess.environment["COLUMNS"].flatMap { Int($0) }.map { max(20, $0) } ?? 80
    }

    private static var style: ForecastPlot.Style {
        let environment = ThisProcess.environment
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].lazy.compactMap { environment[$0] }.first { !$0.isEmpty } ?? ""
        guard locale.lowercased().replacingOccurrences(of: "-", with: "").contains("utf8") else { return .ascii }
        return Output.usesColor() ? .coloured : .plain
    }
}
