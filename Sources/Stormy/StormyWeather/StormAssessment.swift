import Foundation

/// What makes an hour stormy.
package enum StormReasonKind: String, Sendable, Hashable, Codable, CaseIterable {
    /// An official warning.
    case alert
    /// Thunder in the forecast, and something else that speaks for it.
    case thunderstorm
    /// Wind gusts at or over the limit.
    case gusts
    /// Precipitation at or over the limit.
    case rain
}

/// What makes a reason count.
package enum StormKey: Sendable, Hashable, Codable {
    /// The value is at its limit or over it: km/h, or mm per hour.
    case limit(Double)
    /// Thunder with rain or showers, in J/kg of CAPE where it is known.
    case rain(mmPerHour: Double, cape: Double?)
    /// Thunder with gusts.
    case gusts(kmh: Double)
    /// Thunder that another service forecasts too.
    case service(String)
    /// Thunder that somebody warns of.
    case alert(String)
    /// The severity of a warning.
    case severity(CAPSeverity)

    /// For a person: "with rain of 4.2 mm per hour where CAPE is 900 J/kg".
    fileprivate func words(for kind: StormReasonKind, _ units: WeatherUnits) -> String {
        switch self {
        case .limit(let limit):
            "the limit is \(kind == .gusts ? units.speed(limit) : units.rain(limit))"
        case .rain(let rain, let cape):
            "with rain of \(units.rain(rain))"
                + (cape.map { " in unstable air (CAPE \(Int($0.rounded())) J/kg)" } ?? "")
        case .gusts(let gusts): "with gusts of \(units.speed(gusts))"
        case .service(let name): "as \(name) forecasts, too"
        case .alert(let issuer): "of which \(issuer) warns"
        case .severity(let severity): severity.rawValue
        }
    }

    /// Rain says more than gusts; of two of a kind the greater value.
    fileprivate var strength: (Int, Double) {
        switch self {
        case .limit(let limit): (0, limit)
        case .service: (0, 0)
        case .severity(let severity): (0, Double(severity.rank))
        case .alert: (3, 0)
        case .gusts(let gusts): (1, gusts)
        case .rain(let rain, _): (2, rain)
        }
    }

    fileprivate static func stronger(_ one: StormKey?, _ other: StormKey?) -> StormKey? {
        guard let one, let other else { return one ?? other }
        return one.strength >= other.strength ? one : other
    }
}

/// One contiguous run of hours that are stormy for the same reason.
package struct StormReason: Sendable, Equatable, Codable {
    /// What it is.
    package var kind: StormReasonKind
    /// The worst value of the run: the highest WMO code, km/h, mm per hour, or 1...4 for the severity of a warning.
    package var peak: Double
    /// When the first hour begins; may lie before the assessment's `now`, which is inside that hour.
    package var from: Date
    /// When the last hour ends.
    package var until: Date
    /// What makes it count, in the hour where that is strongest; `nil`: nothing, or judged by an earlier version.
    package var key: StormKey?
    /// Who says so, "Open-Meteo"; `nil`: judged by an earlier version.
    package var source: String?
    /// Of a warning: what it is called, "Severe Thunderstorm Warning".
    package var event: String?
    /// Of a warning: the messages that it is known by.
    package var messages: [String]?
    /// `true` for a warning without an end: ``until`` is assumed.
    package var hasOpenEnd: Bool?
    /// The kind of a warning. `nil` for other reasons, and for reasons that an earlier version judged.
    package var hazard: AlertHazard?
    /// The texts of a warning. `nil` if the service gives none.
    package var texts: AlertTexts?
    /// Why the service of a warning itself reports no danger. `nil` if it reports a danger.
    package var noDanger: NoDanger?

    /// A run from its parts.
    package init(
        kind: StormReasonKind, peak: Double, from: Date, until: Date, key: StormKey? = nil, source: String? = nil,
        event: String? = nil, messages: [String]? = nil, hazard: AlertHazard? = nil, texts: AlertTexts? = nil
    ) {
        self.kind = kind
        self.peak = peak
        self.from = from
        self.until = until
        self.key = key
        self.source = source
        self.event = event
        self.messages = messages
        (self.hazard, self.texts) = (hazard, texts)
    }

    /// The kind of a warning that does not count. `nil` if the kind counts or is unknown.
    package var ignoredHazard: AlertHazard? { hazard.flatMap { $0.isStorm ? nil : $0 } }

    /// In metric units: "thunderstorm (WMO 95)", "gusts up to 92 km/h", "rain up to 24 mm per hour".
    package var detail: String { detail(in: .metric) }

    /// The same in a person's units.
    package func detail(in units: WeatherUnits) -> String {
        switch kind {
        case .thunderstorm: "\(phrase(in: units)) (WMO \(Int(peak)))"
        case .alert, .gusts, .rain: phrase(in: units)
        }
    }

    /// Why it counts, for a person: "thunderstorm (WMO 95) with gusts of 60 km/h: Open-Meteo".
    package func explanation(in units: WeatherUnits) -> String {
        let because = key.map { (kind == .thunderstorm ? " " : ", ") + $0.words(for: kind, units) } ?? ""
        return detail(in: units) + because + (source.map { ": \($0)" } ?? "")
    }

    /// It counts as long as somebody warns of it, and no longer.
    package var hangsOnWarnings: Bool {
        if case .alert = key { return true }
        return kind == .alert
    }

    /// ``key`` in words and metric units; `nil`: there is none.
    package var keyWords: String? { key.map { $0.words(for: kind, .metric) } }

    /// ``detail(in:)`` without the code.
    func phrase(in units: WeatherUnits) -> String {
        switch kind {
        // "Tornado Warning" already has the word.
        case .alert: event.map { HazardWords.hasWordForWarning($0) ? $0 : "warning: \($0)" } ?? "warning: of a storm"
        case .thunderstorm: WeatherCode.thunderstorm(Int(peak))
        case .gusts: "gusts up to \(units.speed(peak))"
        case .rain: "rain up to \(units.rain(peak))"
        }
    }

    /// The time it covers.
    package var window: StormWindow { StormWindow(from: from, until: until) }

    /// Hours of one kind that follow each other become one reason. Ascending by start, then in the order of ``StormReasonKind``.
    static func runs(_ hours: [StormReason]) -> [StormReason] {
        let runs = StormReasonKind.allCases.filter { $0 != .alert }.flatMap { kind in
            var runs: [StormReason] = []
            for hour in hours where hour.kind == kind {
                if let last = runs.last, last.until >= hour.from {
                    runs[runs.count - 1].until = max(last.until, hour.until)
                    runs[runs.count - 1].peak = max(last.peak, hour.peak)
                    runs[runs.count - 1].key = StormKey.stronger(last.key, hour.key)
                } else {
                    runs.append(hour)
                }
            }
            return runs
        }
        return sorted(runs)
    }

    /// The same warning for thirteen municipalities is one: of the same words by the same people, at times that touch.
    static func warnings(_ reasons: [StormReason]) -> [StormReason] {
        var (merged, known): ([StormReason], [[AnyHashable]: [Int]]) = ([], [:])
        for reason in reasons.sorted(by: { $0.from < $1.from }) {
            let words: [AnyHashable] = [reason.event ?? "", reason.source ?? "", reason.peak, reason.noDanger?.rawValue ?? ""]
            guard let index = known[words]?.first(where: { reason.from <= merged[$0].until }) else {
                known[words, default: []].append(merged.count)
                merged.append(reason)
                continue
            }
            merged[index].add(reason)
        }
        return limited(merged)
    }

    /// The most warnings of one assessment.
    static let mostWarnings = 30

    /// The most severe warnings. The others are one reason, so that no message of theirs is lost.
    private static func limited(_ warnings: [StormReason]) -> [StormReason] {
        if warnings.count <= mostWarnings { return warnings }
        let ranked = warnings.enumerated().sorted { ($1.element.peak, $0.offset) < ($0.element.peak, $1.offset) }.map(\.element)
        var rest = ranked[mostWarnings - 1]
        for other in ranked[mostWarnings...] {
            rest.from = min(rest.from, other.from)
            rest.add(other)
        }
        (rest.event, rest.texts) = ("\(warnings.count - mostWarnings + 1) other warnings", nil)
        return sorted(ranked.prefix(mostWarnings - 1) + [rest])
    }

    private mutating func add(_ other: StormReason) {
        until = max(until, other.until)
        hasOpenEnd = hasOpenEnd ?? other.hasOpenEnd
        let known = Set(messages ?? [])
        messages = (messages ?? []) + (other.messages ?? []).filter { !known.contains($0) }
    }

    /// By when they begin, and at one time in their order.
    static func sorted(_ reasons: [StormReason]) -> [StormReason] {
        reasons.enumerated().sorted { ($0.element.from, $0.offset) < ($1.element.from, $1.offset) }.map(\.element)
    }

    /// "4.2", "20": of what is not negative.
    static func tenths(_ value: Double) -> String {
        let tenths = Int((value * 10).rounded())
        return tenths % 10 == 0 ? "\(tenths / 10)" : "\(tenths / 10).\(tenths % 10)"
    }
}

/// The answer to "is it going to be stormy?".
package enum StormVerdict: Sendable, Equatable, Codable {
    /// At least one reason within the horizon.
    case stormy
    /// Enough hours are known, and none is stormy.
    case calm
    /// Nobody can say; why, in one sentence.
    case unknown(why: String)
}

/// A verdict with its reasons.
package struct Assessment: Sendable, Equatable, Codable {
    /// Stormy, calm, or unknown.
    package var verdict: StormVerdict
    /// Ascending by start, then in the order of ``StormReasonKind``; empty unless stormy.
    package var reasons: [StormReason]
    /// What does not count: thunder that was forecast and that nothing else speaks for, and warnings below the severity that counts or
    /// of something that is no storm. `nil`: judged by an earlier version.
    package var unconfirmed: [StormReason]?
    /// The other service that was asked, as the first had thunder that nothing confirmed.
    package var second: String?
    /// Messages of warnings that are none any more: what was told of them alone is taken back.
    package var cancelled: [String]?
    /// Hours just ahead for which no service has values; see ``StormRule/unknownHours(in:now:)``. `nil` if there are none.
    package var unknownHours: [StormWindow]?

    /// An assessment from its parts.
    package init(verdict: StormVerdict, reasons: [StormReason] = [], unconfirmed: [StormReason] = []) {
        self.verdict = verdict
        self.reasons = reasons
        self.unconfirmed = unconfirmed
    }

    /// true, false, or nil when unknown: the `stormy` of the JSON reports.
    package var isStormy: Bool? {
        switch verdict {
        case .stormy: true
        case .calm: false
        case .unknown: nil
        }
    }

    /// Thunder was forecast that nothing confirms: another service may know more.
    package var hasDoubtfulThunder: Bool { unconfirmed?.contains { $0.kind == .thunderstorm } ?? false }

    /// The storms seen: reasons of any kind within six hours of each other are one.
    package var windows: [StormWindow] { StormWindow.merge(reasons.map(\.window)) }
}
