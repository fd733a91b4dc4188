import ArgumentParser
import BackgroundCommands
import BackgroundRuntime
import BackgroundTransfer
import Foundation
import ProcessSupport
import Stormy
import StormyWeather

struct ReportVerb: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "report",
        abstract: "Writes a web page that shows forecasts, storms, launches, transfers and the capabilities of this desktop.",
        discussion: "Example:\n  stormy report --open")

    @Flag(help: "Open the page in the browser.") var open = false
    @Option(
        name: [.customShort("o"), .long], help: "The file to write, or \u{201C}-\u{201D} for standard output.",
        completion: .file())
    var output: String?

    /// The number of days whose launches and storms are shown.
    private static let days = 30.0
    /// The maximum number of listed transfers, and the maximum number of drawn places.
    private static let (mostTransfers, mostPictures) = (200, 20)

    func run() async throws {
        let trouble = try StormyTool.configureIfPossible().map {
            "The configuration cannot be read, so this page uses the defaults, without your warning feeds: \($0)"
        }
        let store = try StormyStore.toRead()
        let page = try await page(store, trouble).html
        if output == "-" { return Output.document(page) }
        if output == nil { try AppDirectories.createPrivateFolder(AppRuntime.shared.directories.data) }
        let path = output ?? AppRuntime.shared.directories.data.appendingPathComponent("report.html").path
        if let output { try OwnFiles.refuse(PathName.absolute(output)) }
        // Other users must not read the user's places and photos.
        try Output.file(Data(page.utf8), to: path, isPrivate: true)
        Output.line(path)
        guard open else { return }
        do { try Browser.open(path) } catch { throw CommandFailure(.unavailable, "\(error); the page is \(path)") }
    }

    private func page(_ store: StormyStore, _ trouble: String?) async throws -> ReportPage {
        let now = AppRuntime.shared.now
        let since = now - Self.days * 86_400
        let places = try store.places()
        // The page uses stored forecasts only, so that the page is created quickly and without a network.
        let outcomes = places.isEmpty ? [] : try await AutoOpen(store, .never).opened().outcomes
        let transfers = try BackgroundTransfers.all().sorted { $0.id > $1.id }
        let names = Dictionary(uniqueKeysWithValues: places.map { ($0.id ?? 0, $0) })
        let schedule = try StatusReport.schedule(store)
        let hidden = try NotificationsReport.current().hidden
        let desktop = DoctorCommand.examine(verb: Self.configuration.commandName ?? "")
        return ReportPage(
            madeAt: "Made on \(now.formatted(Self.dayStyle(.current).hour().minute())).", trouble: trouble,
            next: schedule.sentence,
            places: outcomes.enumerated().map { place($1, $0 < Self.mostPictures ? $0 : nil) },
            storms: try store.storms().reversed().filter { $0.ends >= since }.map { storm($0, names[$0.place], hidden) },
            days: Self.days(try WakeReport.all(since: since)), transfers: transfers.prefix(Self.mostTransfers).map(transfer),
            transferCount: transfers.count, findings: desktop.findings, guarantees: GuaranteesReport(desktop.guarantees),
            credits: Set(outcomes.flatMap(Self.sources)).sorted())
    }

    private static func sources(_ outcome: CheckOutcome) -> [String] {
        [outcome.source] + (outcome.forecast?.filledHours ?? []).map(\.source)
            + (outcome.assessment?.reasons ?? []).compactMap(\.source)
    }

    private func place(_ outcome: CheckOutcome, _ number: Int?) -> ReportPage.Place {
        var sentences = [CheckVerb.line(outcome) + (outcome.assessment?.isStormy == true ? "" : ".")]
        for reason in outcome.assessment?.reasons ?? [] {
            sentences += ["Because: \(reason.explanation(in: .ofPerson))."] + CheckVerb.texts(reason)
        }
        for (sentence, reason) in CheckVerb.notCounted(outcome) { sentences += [sentence] + CheckVerb.texts(reason) }
        sentences += CheckVerb.missing(outcome)
        if let fetchedAt = outcome.fetchedAt {
            let age = Output.relative(fetchedAt, now: AppRuntime.shared.now)
            let state = outcome.isStale ? "\(age), outdated" : age
            sentences.append("Forecast of \(outcome.source), \(state).")
        }
        let picture = number.flatMap { number in
            outcome.forecast.map { forecast in
                let plotted = PlottedHours(
                    forecast, outcome.assessment, rule: StormySettings.current.rule, now: AppRuntime.shared.now, count: 24,
                    timeZone: outcome.place.zone, locale: UserLocale.current, units: .ofPerson)
                return ForecastPicture(
                    plotted, title: outcome.place.name, summary: CheckVerb.words(outcome), source: outcome.source,
                    mark: "\(number)"
                ).svg
            }
        }
        return ReportPage.Place(name: outcome.place.name, sentences: sentences, picture: picture)
    }

    private func storm(_ storm: StormRecord, _ place: Place?, _ hidden: Set<String>) -> ReportPage.Storm {
        let life = storm.life
        let isHidden = hidden.contains(StormNotifier.identifier(ofStorm: "\(storm.id ?? 0)"))
        let end =
            life.outlook == .notExpected
            ? "no longer expected"
            : !life.isOpen(now: AppRuntime.shared.now)
                ? "over"
                : isHidden
                    ? "expected, but do not disturb hides the notification"
                    : life.isShown ? "expected, and the notification is shown" : "expected, but the notification is not shown yet"
        return ReportPage.Storm(
            place: place?.name ?? "a place that was removed",
            time: StormText.span(
                StormWindow(from: storm.begins, until: storm.ends), hasOpenEnd: storm.hasOpenEnd,
                timeZone: place?.zone ?? .current, locale: UserLocale.current)
                + " on " + storm.begins.formatted(Self.dayStyle(place?.zone ?? .current)),
            reasons: storm.reasons.map { $0.explanation(in: .ofPerson) }, end: end)
    }

    private static func dayStyle(_ zone: TimeZone) -> Date.FormatStyle {
        Date.FormatStyle(locale: UserLocale.current, timeZone: zone).year().month(.abbreviated).day().weekday(.abbreviated)
    }

    private static func days(_ wakes: [WakeReport]) -> [ReportPage.Day] {
        let hours = Date.FormatStyle(locale: UserLocale.current).hour().minute()
        var days: [(name: String, wakes: [(String, WakeReport)])] = []
        for wake in wakes {
            let name = wake.startedAt.formatted(dayStyle(.current))
            if days.last?.name != name { days.append((name, [])) }
            days[days.count - 1].wakes.append((wake.startedAt.formatted(hours), wake))
        }
        return days.map { ReportPage.Day(name: $0.name, wakes: $0.wakes.map { (time: $0.0, wake: $0.1) }) }
    }

    private func transfer(_ transfer: BackgroundTransferStatus) -> ReportPage.Transfer {
        let isWeather = transfer.session == WeatherSession.identifier
        let file = transfer.file.map { URL(exactPath: $0).lastPathComponent }
        let name = isWeather ? "weather" : file ?? transfer.kind.rawValue
        let proof = transfer.receipt.map { receipt in
            "\(Self.withoutSecrets(receipt.url)), \(Output.bytes(receipt.byteCount)), verified by \(receipt.proof.rawValue)"
        }
        let trouble = transfer.trouble.map(\.message)
        return ReportPage.Transfer(
            name: name, state: transfer.isHeld ? "held" : transfer.state.rawValue,
            place: proof ?? trouble ?? transfer.url ?? "", isTrouble: transfer.state == .failed)
    }

    /// Returns an address without user, password and query, because the address may contain a password or a signature.
    private static func withoutSecrets(_ address: String) -> String {
        guard var parts = URLComponents(string: address) else { return "" }
        (parts.user, parts.password, parts.query, parts.fragment) = (nil, nil, nil, nil)
        return parts.string ?? ""
    }
}
