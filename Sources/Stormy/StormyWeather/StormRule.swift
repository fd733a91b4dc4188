import Foundation

/// How severe an official alert must be to count (CAP), for services that give alerts.
package enum CAPSeverity: String, Sendable, Hashable, Codable, CaseIterable {
    /// Minimal threat, or worse.
    case minor
    /// Possible threat, or worse.
    case moderate
    /// Significant threat, or worse.
    case severe
    /// Extraordinary threat only.
    case extreme
    /// Alerts do not count.
    case off
}

/// When a forecast is a storm: any one of the conditions, in any hour of the horizon.
package struct StormRule: Sendable, Equatable, Codable {
    /// How far to look, in hours from now.
    package var horizonHours: Int
    /// Whether a thunderstorm counts.
    package var thunderstorm: Bool
    /// Gusts from this speed on count, in km/h.
    package var gustsKMH: Double
    /// Precipitation from this amount on counts, in mm per hour.
    package var rainMMPerHour: Double
    /// The least severity of an alert that counts. No supported service gives alerts yet.
    package var alertSeverity: CAPSeverity

    /// So many hours of the horizon must be known before silence means calm.
    package static let minimumKnownHours = 6

    /// A rule; the defaults are the configuration's.
    package init(
        horizonHours: Int = 24, thunderstorm: Bool = true, gustsKMH: Double = 75,
        rainMMPerHour: Double = 20, alertSeverity: CAPSeverity = .severe
    ) {
        self.horizonHours = horizonHours
        self.thunderstorm = thunderstorm
        self.gustsKMH = gustsKMH
        self.rainMMPerHour = rainMMPerHour
        self.alertSeverity = alertSeverity
    }

    /// Judges the hours that overlap `now` up to `now` plus the horizon.
    ///
    /// A storm found is a storm, however little else is known. Without one the verdict is calm only when the hour of
    /// `now` is in the forecast and enough hours are known: absence of data is never calm.
    package func assess(_ forecast: Forecast, now: Date) -> Assessment {
        let horizonEnd = now.addingTimeInterval(Double(horizonHours) * ForecastHour.seconds)
        let hours = forecast.hours.filter { $0.end > now && $0.start < horizonEnd }
        let reasons = StormReasonKind.allCases
            .flatMap { kind in runs(of: kind, in: hours) }
            .enumerated()
            .sorted { ($0.element.from, $0.offset) < ($1.element.from, $1.offset) }
            .map(\.element)
        if !reasons.isEmpty { return Assessment(verdict: .stormy, reasons: reasons) }
        if let why = ignorance(of: forecast, within: hours, now: now) {
            return Assessment(verdict: .unknown(why: why))
        }
        return Assessment(verdict: .calm)
    }

    /// The value that makes an hour stormy for one reason, or nil.
    private func storminess(_ kind: StormReasonKind, _ hour: ForecastHour) -> Double? {
        switch kind {
        case .thunderstorm:
            guard thunderstorm, let code = hour.weatherCode, WeatherCode.isThunderstorm(code) else { return nil }
            return Double(code)
        case .gusts:
            guard let gusts = hour.gustsKMH, gusts >= gustsKMH else { return nil }
            return gusts
        case .rain:
            guard let rain = hour.precipitationMM, rain >= rainMMPerHour else { return nil }
            return rain
        }
    }

    private func runs(of kind: StormReasonKind, in hours: [ForecastHour]) -> [StormReason] {
        var runs: [StormReason] = []
        for hour in hours {
            guard let value = storminess(kind, hour) else { continue }
            if let last = runs.last, last.until >= hour.start {
                runs[runs.count - 1].until = hour.end
                runs[runs.count - 1].peak = max(last.peak, value)
            } else {
                runs.append(StormReason(kind: kind, peak: value, from: hour.start, until: hour.end))
            }
        }
        return runs
    }

    /// Whether this hour could have shown a storm. Without a weather code nobody knows about thunder, whatever the
    /// wind does; without gusts (not every model has them) the code and the rain still speak.
    private func isKnown(_ hour: ForecastHour) -> Bool {
        thunderstorm ? hour.weatherCode != nil : hour.precipitationMM != nil || hour.gustsKMH != nil
    }

    private func ignorance(of forecast: Forecast, within hours: [ForecastHour], now: Date) -> String? {
        guard let first = forecast.hours.first, let last = forecast.hours.last else { return "the forecast has no hours" }
        if last.end <= now { return "the forecast is too old: it ended \(StormRule.span(now.timeIntervalSince(last.end))) ago" }
        if first.start > now { return "the forecast begins only in \(StormRule.span(first.start.timeIntervalSince(now)))" }
        guard hours.contains(where: { $0.start <= now }) else { return "the forecast has no values for the present hour" }
        let known = hours.count(where: isKnown)
        if known >= min(StormRule.minimumKnownHours, horizonHours), known > 0 { return nil }
        if known == 0 { return "the forecast has no weather values for the next \(horizonHours) hours" }
        if hours.count == known { return "the forecast is too old: it covers only \(known) of the next \(horizonHours) hours" }
        return "the forecast has values for only \(known) of the next \(horizonHours) hours"
    }

    private static func span(_ seconds: TimeInterval) -> String {
        let minutes = Int((seconds / 60).rounded(.up))
        return minutes < 60 ? "\(minutes) min" : "\(minutes / 60) h \(minutes % 60) min"
    }
}
