import Foundation

/// The kinds of reasons for a storm.
package enum StormReasonKind: String, Sendable, Hashable, Codable, CaseIterable {
    /// An official warning.
    case alert
    /// Thunder in the forecast, together with a confirming condition, for example rain.
    case thunderstorm
    /// Wind gusts at or above the limit.
    case gusts
    /// Precipitation at or above the limit.
    case rain
}

/// The condition that makes a reason count as a storm.
package enum StormKey: Sendable, Hashable, Codable {
    /// The value is at or above its limit, in km/h or mm per hour.
    case limit(Double)
    /// Thunder with rain or showers. CAPE is in J/kg, and `nil` if the CAPE is unknown.
    case rain(mmPerHour: Double, cape: Double?)
    /// Thunder with gusts.
    case gusts(kmh: Double)
    /// Thunder that another service also forecasts.
    case service(String)
    /// Thunder for which an official warning is in force.
    case alert(String)
    /// The severity of an official warning.
    case severity(CAPSeverity)

    /// A text for the user, for example "with rain of 4.2 mm per hour where CAPE is 900 J/kg".
    fileprivate func words(for kind: StormReasonKind, _ units: WeatherUnits) -> String {
        switch self {
        case .limit(let limit):
            "the limit is \(kind == .gusts ? units.speed(limit) : units.rain(limit))"
        case .rain(let rain, let cape):
            "with rain of \(units.rain(rain))"
                + (cape.map { " in unstable air (CAPE \(Int($0.rounded())) J/kg)" } ?? "")
        case .gusts(let gusts): "with gusts of \(units.speed(gusts))"
        case .service(let name): "as \(name) also forecasts"
        case .alert(let issuer): "of which \(issuer) warns"
        case .severity(let severity): severity.rawValue
        }
    }

    /// The rank of a condition. Rain has a higher rank than gusts. Of two conditions of the same kind, the condition with the
    /// greater value has the higher rank.
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

/// A contiguous run of hours that are stormy for the same reason.
package struct StormReason: Sendable, Equatable, Codable {
    /// The kind of the reason.
    package var kind: StormReasonKind
    /// The worst value of the consecutive hours: the WMO code, the gusts in km/h, the rain in mm per hour, or the severity of a
    /// warning (1...4).
    package var peak: Double
    /// The beginning of the first hour. This time may be before the time of the assessment, because the first hour may be the
    /// current hour.
    package var from: Date
    /// The end of the last hour.
    package var until: Date
    /// The strongest of the conditions that make the reason count as a storm. `nil` if the reason does not count as a storm, or
    /// if an earlier version of Stormy assessed the reason.
    package var key: StormKey?
    /// The source of the reason, for example "Open-Meteo". `nil` if an earlier version assessed the reason.
    package var source: String?
    /// The name of a warning, for example "Severe Thunderstorm Warning".
    package var event: String?
    /// The identifiers of a warning's messages.
    package var messages: [String]?
    /// `true` if the service sends no end of the warning. ``until`` is then a time that Stormy assumed.
    package var hasOpenEnd: Bool?
    /// The kind of a warning's hazard. `nil` for other reasons, and for reasons that an earlier version assessed.
    package var hazard: AlertHazard?
    /// The texts of a warning. `nil` if the service sends no texts.
    package var texts: AlertTexts?
    /// The reason why the service of a warning reports no danger. `nil` if the service reports a danger.
    package var noDanger: NoDanger?

    /// Creates a reason from its parts.
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

    /// The kind of a warning's hazard, if this kind is not a storm. `nil` if the kind is a storm or is unknown.
    package var ignoredHazard: AlertHazard? { hazard.flatMap { $0.isStorm ? nil : $0 } }

    /// A text in metric units, for example "thunderstorm (WMO 95)", "gusts up to 92 km/h" or "rain up to 24 mm per hour".
    package var detail: String { detail(in: .metric) }

    /// Returns the text of ``detail`` in other units.
    package func detail(in units: WeatherUnits) -> String {
        switch kind {
        case .thunderstorm: "\(phrase(in: units)) (WMO \(Int(peak)))"
        case .alert, .gusts, .rain: phrase(in: units)
        }
    }

    /// Returns the explanation for the user, for example "thunderstorm (WMO 95) with gusts of 60 km/h: Open-Meteo".
    package func explanation(in units: WeatherUnits) -> String {
        let because = key.map { (kind == .thunderstorm ? " " : ", ") + $0.words(for: kind, units) } ?? ""
        return detail(in: units) + because + (source.map { ": \($0)" } ?? "")
    }

    /// `true` if the reason counts as a storm only while a warning is in force.
    package var hangsOnWarnings: Bool {
        if case .alert = key { return true }
        return kind == .alert
    }

    /// The text of ``key`` in metric units. `nil` if ``key`` is `nil`.
    package var keyWords: String? { key.map { $0.words(for: kind, .metric) } }

    /// Returns ``detail(in:)`` without the WMO code.
    func phrase(in units: WeatherUnits) -> String {
        switch kind {
        // A name such as "Tornado Warning" already contains a word for "warning".
        case .alert: event.map { HazardWords.hasWordForWarning($0) ? $0 : "warning: \($0)" } ?? "warning: of a storm"
        case .thunderstorm: WeatherCode.thunderstorm(Int(peak))
        case .gusts: "gusts up to \(units.speed(peak))"
        case .rain: "rain up to \(units.rain(peak))"
        }
    }

    /// The hours to which the reason applies, from the first hour to the end of the last hour.
    package var window: StormWindow { StormWindow(from: from, until: until) }

    /// Joins consecutive hours of the same kind into one reason. The result is ascending by start, then in the order of
    /// ``StormReasonKind``.
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

    /// Joins equal warnings, for example a warning that the service sent separately for each of thirteen municipalities. Warnings
    /// are equal if their texts and sources are equal, and their times overlap or touch.
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

    /// The maximum number of warnings in one assessment.
    static let mostWarnings = 30

    /// Keeps the most severe warnings. The other warnings are joined into one reason, which keeps the identifiers of their
    /// messages.
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

    /// Sorts reasons by their beginning. Reasons with the same beginning keep their order.
    static func sorted(_ reasons: [StormReason]) -> [StormReason] {
        reasons.enumerated().sorted { ($0.element.from, $0.offset) < ($1.element.from, $1.offset) }.map(\.element)
    }

    /// Formats a number that is not negative with at most one decimal: "4.2", "20".
    static func tenths(_ value: Double) -> String {
        let tenths = Int((value * 10).rounded())
        return tenths % 10 == 0 ? "\(tenths / 10)" : "\(tenths / 10).\(tenths % 10)"
    }
}

/// The verdict on a forecast.
package enum StormVerdict: Sendable, Equatable, Codable {
    /// At least one reason is within the hours that are assessed (the horizon).
    case stormy
    /// Enough hours have values, and no hour with values is stormy.
    case calm
    /// The forecast does not show whether a storm is expected. The value is a sentence with the reason.
    case unknown(why: String)
}

/// A verdict and its reasons.
package struct Assessment: Sendable, Equatable, Codable {
    /// The verdict: stormy, calm, or unknown.
    package var verdict: StormVerdict
    /// The reasons, sorted by start and then by ``StormReasonKind``. The array is empty if the verdict is not `stormy`.
    package var reasons: [StormReason]
    /// The reasons that do not count as a storm: unconfirmed thunder, warnings that are not severe enough, and warnings of
    /// hazards that are not storms. `nil` if an earlier version of Stormy assessed the forecast.
    package var unconfirmed: [StormReason]?
    /// The name of the second service. This service was also requested, because the first forecast had unconfirmed thunder.
    package var second: String?
    /// The identifiers of the messages whose warnings have ended or no longer count as a storm. If a storm has only such
    /// warnings, the storm is marked as no longer expected.
    package var cancelled: [String]?
    /// The next hours for which no service has values. See ``StormRule/unknownHours(in:now:)``. `nil` if all of these hours are
    /// known.
    package var unknownHours: [StormWindow]?

    /// Creates an assessment from its parts.
    package init(verdict: StormVerdict, reasons: [StormReason] = [], unconfirmed: [StormReason] = []) {
        self.verdict = verdict
        self.reasons = reasons
        self.unconfirmed = unconfirmed
    }

    /// The field `stormy` of the JSON reports: `true`, `false`, or `nil` if unknown.
    package var isStormy: Bool? {
        switch verdict {
        case .stormy: true
        case .calm: false
        case .unknown: nil
        }
    }

    /// `true` if the forecast has thunder without a confirming condition. Another service may confirm the thunder.
    package var hasDoubtfulThunder: Bool { unconfirmed?.contains { $0.kind == .thunderstorm } ?? false }

    /// The times of the storms. If the distance between two reasons of any kind is at most six hours, the reasons belong to one
    /// storm.
    package var windows: [StormWindow] { StormWindow.merge(reasons.map(\.window)) }
}
