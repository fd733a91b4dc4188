import ArgumentParser
import BackgroundCommands
import BackgroundRuntime
import Foundation
import Stormy
import StormyWeather

struct CheckVerb: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "check", abstract: "Checks the weather now, and shows whether a storm is expected and why.",
        discussion: "Example:\n  stormy check Sydney --exit-code; [ $? -eq 10 ] && echo storm")

    @Argument(help: "The name of one place. Default: all places.", completion: .places) var name: String?
    @Flag(help: "Fetch a new forecast, and fail if no new forecast is available.") var fresh = false
    @Flag(help: "Use the stored forecast only.") var offline = false
    @Flag(help: "Show a desktop notification for a storm that was not shown yet.") var notify = false
    @Flag(help: "Show the result in a desktop notification, even if no storm is expected.") var tell = false
    @Flag(help: "Exit with code 10 if a storm is expected.") var exitCode = false
    @Flag(name: .shortAndLong, help: "Print the texts of official warnings.") var verbose = false
    @Flag(help: "Print JSON.") var json = false

    func validate() throws {
        if fresh && offline { throw ValidationError("--fresh and --offline cannot be used together") }
    }

    struct Reason: Encodable {
        let kind: String
        let detail: String
        let from: Date
        /// The time until which the reason is valid. If ``openEnd`` is `true`, Stormy assumed this time.
        let until: Date
        /// `true` if the service stated no end time.
        let openEnd: Bool?
        let source: OrNull<String>
        let key: OrNull<String>
        /// The official warning. `nil` if the reason comes from the forecast.
        let warning: Warning?
        /// The text of ``detail`` in the user's units.
        let words: String

        private enum CodingKeys: CodingKey { case kind, detail, from, until, openEnd, source, key, warning }

        init(_ reason: StormReason) {
            kind = reason.kind.rawValue
            detail = reason.detail
            words = reason.detail(in: .ofPerson)
            source = OrNull(reason.source)
            key = OrNull(reason.keyWords)
            from = reason.from
            until = reason.until
            openEnd = reason.hasOpenEnd
            warning = reason.kind == .alert ? Warning(reason) : nil
        }
    }

    /// The kind and the texts of an official warning.
    struct Warning: Encodable {
        let event: OrNull<String>
        /// The kind of the hazard, for example "wind".
        let hazard: OrNull<String>
        let headline: OrNull<String>
        let description: OrNull<String>
        let instruction: OrNull<String>

        init(_ reason: StormReason) {
            event = OrNull(reason.event)
            hazard = OrNull(reason.hazard?.rawValue)
            headline = OrNull(reason.texts?.headline)
            description = OrNull(reason.texts?.description)
            instruction = OrNull(reason.texts?.instruction)
        }
    }

    private struct Row: Encodable {
        let place: String
        let stormy: OrNull<Bool>
        let reasons: [Reason]
        let unconfirmed: [Reason]
        let source: String
        let fetchedAt: OrNull<Date>
        let ageSeconds: OrNull<Int>
        let stale: Bool
        let trouble: OrNull<String>
        let notAnswered: [String]
        /// The values of the service that cannot be read.
        let unreadable: [StormValue]
        /// The next hours for which no service has values.
        let unknownHours: [StormWindow]
        /// The hours for which the first service sent no values. The values of these hours come from another service.
        let filledHours: [FilledHours]
        let officialWarnings: [WarningLines.Row]
    }

    private struct FilledHours: Encodable {
        let from: Date
        let until: Date
        let source: String
    }

    func run() async throws {
        try await DesktopCommandNotice.explainingFailures(tell) { try await check() }
    }

    private func check() async throws {
        try StormyTool.configure()
        let isOfflineReadOnly = offline && !notify && !tell
        let store = try isOfflineReadOnly ? StormyStore.toRead() : StormyStore.open()
        let places = try PlaceVerb.places(named: name, in: store)
        let weather = try await open(store, places.map(\.name))
        let outcomes = weather.outcomes
        if let unknown = weather.unknownRegions { Output.note("  Not used: \(unknown)") }
        // Without `--notify`, the command can withdraw notifications and mark storms as no longer expected, but shows no alert.
        for (place, outcome) in zip(places, outcomes) {
            try StormNotifier(store: store).show(place, !notify ? .none : outcome.assessment == nil ? .warnedOf : .all)
        }
        if tell { try await ActionNotification.show(Self.title(outcomes), outcomes.map(Self.line).joined(separator: "\n")) }
        if json {
            try Output.json(outcomes.map { try Self.row($0, store) })
        } else {
            var said: Set<String> = []
            for outcome in outcomes {
                try Self.printForPeople(outcome, store, verbose: verbose, without: said)
                said.formUnion(outcome.notAnswered)
            }
            Output.line(try StatusReport.schedule(store).sentence)
        }
        if exitCode, outcomes.contains(where: { $0.assessment?.isStormy == true }) { throw ExitCode(10) }
        if outcomes.allSatisfy({ $0.fetchedAt == nil }) {
            throw ExitCode(offline ? ExitStatus.notFound.rawValue : ExitStatus.unavailable.rawValue)
        }
    }

    /// The maximum time for which the command waits for responses of the services.
    static let patience: Duration = .seconds(40)

    private func open(_ store: StormyStore, _ places: [String]) async throws -> OpenedWeather {
        if fresh { return try await AsyncOpen(store, places: places, timeout: Self.patience).opened() }
        return try await AutoOpen(store, places: places, offline ? .never : .always, timeout: Self.patience).opened()
    }

    private static func row(_ outcome: CheckOutcome, _ store: StormyStore) throws -> Row {
        Row(
            place: outcome.place.name, stormy: OrNull(outcome.assessment?.isStormy),
            reasons: (outcome.assessment?.reasons ?? []).map(Reason.init),
            unconfirmed: (outcome.assessment?.unconfirmed ?? []).map(Reason.init), source: outcome.source,
            fetchedAt: OrNull(outcome.fetchedAt),
            ageSeconds: OrNull(outcome.fetchedAt.map { Int(AppRuntime.shared.now.timeIntervalSince($0)) }),
            stale: outcome.isStale, trouble: OrNull(outcome.trouble),
            notAnswered: outcome.notAnswered,
            unreadable: outcome.forecast?.unreadable ?? [], unknownHours: outcome.assessment?.unknownHours ?? [],
            filledHours: (outcome.forecast?.filledHours ?? []).map {
                FilledHours(from: $0.window.from, until: $0.window.until, source: $0.source)
            },
            officialWarnings: try WarningLines(of: outcome.place, in: store).rows)
    }

    private static func title(_ outcomes: [CheckOutcome]) -> String {
        if outcomes.contains(where: { $0.assessment?.isStormy == true }) { return "Storm expected" }
        guard outcomes.allSatisfy({ $0.assessment?.isStormy == false }) else { return "The weather is unknown" }
        let isPartial = outcomes.contains { $0.assessment?.unknownHours != nil }
        return isPartial ? "No storm expected in the hours with a forecast" : "No storm expected"
    }

    static func line(_ outcome: CheckOutcome) -> String { "\(outcome.place.name): \(words(outcome))" }

    /// Returns the expected weather, without the place.
    static func words(_ outcome: CheckOutcome) -> String {
        switch outcome.assessment?.verdict {
        case .stormy?:
            let reasons = outcome.assessment?.reasons ?? []
            return StormText.body(reasons, timeZone: outcome.place.zone, locale: UserLocale.current, units: .ofPerson)
        case .calm?: return calm(outcome)
        case .unknown(let why)?: return "unknown, \(why)"
        case nil: return "unknown" + (outcome.trouble.map { ", \($0)" } ?? "")
        }
    }

    private static func calm(_ outcome: CheckOutcome) -> String {
        outcome.assessment?.unknownHours == nil ? "calm" : "calm in the hours with a forecast"
    }

    /// Returns the reasons that do not count as a storm, with one sentence each. Ignored kinds of warnings come last, grouped by
    /// kind.
    static func notCounted(_ outcome: CheckOutcome) -> [(sentence: String, reason: StormReason)] {
        let rule = StormySettings.current.rule
        let reasons = outcome.assessment?.unconfirmed ?? []
        let ignored = AlertHazard.allCases.flatMap { hazard in reasons.filter { $0.ignoredHazard == hazard } }
        return (reasons.filter { $0.ignoredHazard == nil } + ignored).map { reason in
            let hours = StormText.span(
                reason.window, hasOpenEnd: reason.hasOpenEnd == true, timeZone: outcome.place.zone, locale: UserLocale.current)
            let source = reason.kind == .alert ? reason.source.map { ": \($0)" } ?? "" : ""
            let mark = reason.ignoredHazard.map { "Ignored (\($0.name))" } ?? "Not counted"
            let sentence =
                "\(mark): \(reason.detail(in: .ofPerson)) \(hours), "
                + rule.words(notCounting: reason, second: outcome.assessment?.second) + source + "."
            return (sentence, reason)
        }
    }

    /// Returns the texts of a warning, one line each. The result is empty for reasons of the forecast.
    static func texts(_ reason: StormReason) -> [String] {
        guard let texts = reason.texts else { return [] }
        return [texts.headline, texts.description, texts.instruction.map { "What to do: \($0)" }].compactMap { $0 }
    }

    /// Returns sentences about values that the forecast does not contain, one for each value.
    static func missing(_ outcome: CheckOutcome) -> [String] {
        var sentences = hourSentences(outcome)
        let unreadable = outcome.forecast?.unreadable ?? []
        for value in unreadable {
            sentences.append(
                "This forecast has \(value.words) that cannot be read, because the unit is unknown or the value is impossible.")
        }
        if let hours = outcome.forecast?.hours, !hours.isEmpty, hours.allSatisfy({ $0.gustsKMH == nil }),
            !unreadable.contains(.gusts)
        {
            sentences.append("This forecast has no wind gusts.")
        }
        return sentences
    }

    /// Returns sentences about the next hours for which the forecast's service has no values.
    private static func hourSentences(_ outcome: CheckOutcome) -> [String] {
        func span(_ window: StormWindow) -> String {
            StormText.span(window, timeZone: outcome.place.zone, locale: UserLocale.current)
        }
        let filled = (outcome.forecast?.filledHours ?? []).map {
            "Values of \($0.source) are used \(span($0.window)), because \(outcome.source) lacks values for these hours."
        }
        return filled
            + (outcome.assessment?.unknownHours ?? []).map {
                "The weather is not known: no service has all values \(span($0)). A storm in these hours is not detected."
            }
    }

    /// - Parameter said: the reasons that were already printed for another place.
    static func printForPeople(
        _ outcome: CheckOutcome, _ store: StormyStore, verbose: Bool = false, without said: Set<String> = []
    ) throws {
        func printTexts(_ reason: StormReason) {
            if verbose { for text in texts(reason) { Output.line("    " + text) } }
        }
        let name = outcome.place.name
        switch outcome.assessment?.verdict {
        case .stormy?:
            Output.line(Output.loud("\(name): stormy."))
            Output.line(
                "  "
                    + StormText.body(
                        outcome.assessment?.reasons ?? [], timeZone: outcome.place.zone, locale: UserLocale.current,
                        units: .ofPerson))
            for reason in outcome.assessment?.reasons ?? [] {
                Output.line("  Because: \(reason.explanation(in: .ofPerson)).")
                printTexts(reason)
            }
        case .calm?:
            Output.line("\(name): \(calm(outcome)).")
        case .unknown(let why)?:
            Output.line("\(name): unknown: \(why).")
        case nil:
            Output.line("\(name): unknown.")
        }
        for (sentence, reason) in notCounted(outcome) {
            Output.line("  " + sentence)
            printTexts(reason)
        }
        for sentence in missing(outcome) { Output.line("  " + sentence) }
        for reason in outcome.notAnswered where !said.contains(reason) { Output.note("  Not used: \(reason)") }
        if let trouble = outcome.trouble { Output.note("  Not refreshed: \(trouble)") }
        if let fetchedAt = outcome.fetchedAt {
            Output.line("  Forecast of \(outcome.source), \(Output.relative(fetchedAt, now: AppRuntime.shared.now)).")
        }
        for sentence in try WarningLines(of: outcome.place, in: store).sentences { Output.line("  " + sentence) }
    }
}
