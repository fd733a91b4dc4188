import Foundation

/// What makes an hour stormy.
package enum StormReasonKind: String, Sendable, Hashable, Codable, CaseIterable {
    /// A thunderstorm by weather code.
    case thunderstorm
    /// Wind gusts at or over the limit.
    case gusts
    /// Precipitation at or over the limit.
    case rain
}

/// One contiguous run of hours that are stormy for the same reason.
package struct StormReason: Sendable, Equatable, Codable {
    /// What it is.
    package var kind: StormReasonKind
    /// The worst value of the run: the highest WMO code, km/h, or mm per hour.
    package var peak: Double
    /// When the first hour begins; may lie before the assessment's `now`, which is inside that hour.
    package var from: Date
    /// When the last hour ends.
    package var until: Date

    /// A run from its parts.
    package init(kind: StormReasonKind, peak: Double, from: Date, until: Date) {
        self.kind = kind
        self.peak = peak
        self.from = from
        self.until = until
    }

    /// For a person: "thunderstorm with hail (WMO 96)", "gusts up to 92 km/h", "rain up to 24 mm per hour".
    package var detail: String {
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
    package var window: StormWindow { StormWindow(from: from, until: until) }

    private static func tenths(_ value: Double) -> String {
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

    /// An assessment from its parts.
    package init(verdict: StormVerdict, reasons: [StormReason] = []) {
        self.verdict = verdict
        self.reasons = reasons
    }

    /// true, false, or nil when unknown: the `stormy` of the JSON reports.
    package var isStormy: Bool? {
        switch verdict {
        case .stormy: true
        case .calm: false
        case .unknown: nil
        }
    }

    /// The storms seen: reasons of any kind within six hours of each other are one.
    package var windows: [StormWindow] { StormWindow.merge(reasons.map(\.window)) }
}
