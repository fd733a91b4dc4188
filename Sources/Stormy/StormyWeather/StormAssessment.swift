import Foundation

/// What makes an hour stormy.
public enum StormReasonKind: String, Sendable, Hashable, Codable, CaseIterable {
    /// A thunderstorm by weather code.
    case thunderstorm
    /// Wind gusts at or over the limit.
    case gusts
    /// Precipitation at or over the limit.
    case rain
}

/// One contiguous run of hours that are stormy for the same reason.
public struct StormReason: Sendable, Equatable, Codable {
    /// What it is.
    public var kind: StormReasonKind
    /// The worst value of the run: the highest WMO code, km/h, or mm per hour.
    public var peak: Double
    /// When the first hour begins; may lie before the assessment's `now`, which is inside that hour.
    public var from: Date
    /// When the last hour ends.
    public var until: Date

    /// A run from its parts.
    public init(kind: StormReasonKind, peak: Double, from: Date, until: Date) {
        self.kind = kind
        self.peak = peak
        self.from = from
        self.until = until
    }

    /// For a person: "thunderstorm with hail (WMO 96)", "gusts up to 92 km/h", "rain up to 24 mm per hour".
    public var detail: String {
        switch kind {
        case .thunderstorm: "\(phrase) (WMO \(Int(peak)))"
        case .gusts, .rain: phrase
        }
    }

    /// ``detail`` without the code.
    var phrase: String {
        switch kind {
        case .thunderstorm: WeatherCode.thunderstorm(Int(peak))
        case .gusts: "gusts up to \(Int(peak.rounded())) km/h"
        case .rain: "rain up to \(StormReason.tenths(peak)) mm per hour"
        }
    }

    /// The time it covers.
    public var window: StormWindow { StormWindow(from: from, until: until) }

    private static func tenths(_ value: Double) -> String {
        let tenths = Int((value * 10).rounded())
        return tenths % 10 == 0 ? "\(tenths / 10)" : "\(tenths / 10).\(tenths % 10)"
    }
}

/// The answer to "is it going to be stormy?".
public enum StormVerdict: Sendable, Equatable, Codable {
    /// At least one reason within the horizon.
    case stormy
    /// Enough hours are known, and none is stormy.
    case calm
    /// Nobody can say; why, in one sentence.
    case unknown(why: String)
}

/// A verdict with its reasons.
public struct Assessment: Sendable, Equatable, Codable {
    /// Stormy, calm, or unknown.
    public var verdict: StormVerdict
    /// Ascending by start, then in the order of ``StormReasonKind``; empty unless stormy.
    public var reasons: [StormReason]

    /// An assessment from its parts.
    public init(verdict: StormVerdict, reasons: [StormReason] = []) {
        self.verdict = verdict
        self.reasons = reasons
    }

    /// true, false, or nil when unknown: the `stormy` of the JSON reports.
    public var isStormy: Bool? {
        switch verdict {
        case .stormy: true
        case .calm: false
        case .unknown: nil
        }
    }

    /// The storms seen: reasons of any kind within six hours of each other are one.
    public var windows: [StormWindow] { StormWindow.merge(reasons.map(\.window)) }
}
