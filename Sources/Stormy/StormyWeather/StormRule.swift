import Foundation

/// The severity of an official warning (CAP). In the configuration, a severity is the minimum severity at which a warning counts
/// as a storm.
package enum CAPSeverity: String, Sendable, Hashable, Codable, CaseIterable {
    /// A minimal threat. In the configuration: warnings of a minimal threat or a worse threat count as a storm.
    case minor
    /// A possible threat. In the configuration: warnings of a possible threat or a worse threat count as a storm.
    case moderate
    /// A significant threat. In the configuration: warnings of a significant threat or a worse threat count as a storm.
    case severe
    /// An extraordinary threat. In the configuration: only warnings of an extraordinary threat count as a storm.
    case extreme
    /// In the configuration: official warnings do not count as a storm.
    case off
}

/// The conditions under which a storm is expected. A storm is expected if one condition is fulfilled in any hour of the horizon.
///
/// Gusts or rain at their limit count as a storm without another condition. Thunder in a forecast is often only a measure of how
/// unstable the air is. For this reason, thunder needs a confirming condition: rain, or gusts of half their limit.
package struct StormRule: Sendable, Equatable, Codable {
    /// The number of hours from now that are assessed.
    package var horizonHours: Int
    /// `true` if thunder with a confirming condition counts as a storm.
    package var thunderstorm: Bool
    /// The lowest gusts that count as a storm, in km/h.
    package var gustsKMH: Double
    /// The lowest precipitation that counts as a storm, in mm per hour.
    package var rainMMPerHour: Double
    /// The lowest severity at which an official warning counts as a storm without another condition. The kind of the warning must
    /// be ``AlertHazard/isStorm``.
    package var alertSeverity: CAPSeverity

    /// The minimum rain or showers that confirm thunder, in mm per hour. Source of the rule: Open-Meteo's weather code is 95 from
    /// 0.1 mm per hour if the air is unstable enough.
    package static let confirmingRainMM = 0.5
    /// The minimum CAPE in J/kg with which rain confirms thunder, if the service sends CAPE.
    package static let confirmingCAPE = 100.0

    /// The minimum gusts that confirm thunder, in km/h.
    package var confirmingGustsKMH: Double { gustsKMH / 2 }

    /// The minimum number of hours with values in the horizon that is required for the verdict `calm`.
    package static let minimumKnownHours = 6

    /// Creates a rule. The default values are the defaults of the configuration.
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

    /// Assesses the hours from `now` to the end of the horizon, including the hour of `now`.
    ///
    /// One storm is sufficient for the verdict `stormy`, even if other hours are unknown. The verdict is calm only if the
    /// forecast contains the hour of `now` and enough other hours. Hours without data never count as calm.
    ///
    /// - Parameters:
    ///   - second: the forecast of another service. Thunder counts as a storm if both forecasts contain thunder. A storm that
    ///     only the second forecast contains also counts.
    ///   - alerts: official warnings at the place.
    package func assess(
        _ forecast: Forecast, beside second: Forecast? = nil, alerts: [AlertEvent] = [], now: Date
    ) -> Assessment {
        let alerts = alertSeverity == .off ? [] : alerts
        var assessment = assess(forecast, second, alerts, now)
        if !forecast.hours.isEmpty, assessment.isStormy != nil {
            let gaps = unknownHours(in: forecast, now: now)
            let unknown = second.map { unknownHours(in: forecast.filled(gaps, from: $0), now: now) } ?? gaps
            if !unknown.isEmpty { assessment.unknownHours = unknown }
        }
        let warnings = reasons(of: alerts, now: now)
        if !warnings.over.isEmpty { assessment.cancelled = warnings.over }
        assessment.unconfirmed = (assessment.unconfirmed ?? []) + warnings.others
        if warnings.counting.isEmpty { return assessment }
        assessment.verdict = .stormy
        assessment.reasons = StormReason.sorted(warnings.counting + assessment.reasons)
        return assessment
    }

    /// Returns a text that explains to the user why a reason in ``Assessment/unconfirmed`` does not count as a storm.
    ///
    /// - Parameter second: the other service that was also requested.
    package func words(notCounting reason: StormReason, second: String?) -> String {
        guard reason.kind == .alert else {
            return "without the rain or wind of a thunderstorm" + (second.map { ", and \($0) forecasts no thunder" } ?? "")
        }
        if let noDanger = reason.noDanger { return noDanger.words }
        guard let severity = reason.keyWords else { return "of unknown severity" }
        if alertSeverity == .off { return "\(severity), because warnings are off" }
        if reason.ignoredHazard != nil { return severity }
        return "\(severity), but the configured minimum is \(alertSeverity.rawValue)"
    }

    /// Returns three lists. The first list contains the warnings that count as a storm. The second list contains the warnings
    /// that are not severe enough or not about a storm. The third list contains the messages of events that no longer count as a
    /// storm. Such an event is cancelled, is weaker, is in another place, or begins after the horizon.
    private func reasons(of alerts: [AlertEvent], now: Date) -> (counting: [StormReason], others: [StormReason], over: [String]) {
        let horizonEnd = now.addingTimeInterval(Double(horizonHours) * ForecastHour.seconds)
        var (counting, others, over): ([StormReason], [StormReason], [String]) = ([], [], [])
        for alert in alerts {
            var doesCount = false
            for info in alert.infos where info.until > now && info.from < horizonEnd {
                var reason = StormReason(
                    kind: .alert, peak: Double(info.severity?.rank ?? 0), from: info.from, until: info.until,
                    key: info.severity.map { .severity($0) }, source: info.issuer, event: info.event, messages: alert.messages,
                    hazard: info.hazard, texts: info.texts)
                (reason.hasOpenEnd, reason.noDanger) = (info.hasOpenEnd, info.noDanger)
                let counts = info.hazard.isStorm && info.severity.map { $0.rank >= alertSeverity.rank } == true
                if counts { counting.append(reason) } else { others.append(reason) }
                doesCount = doesCount || counts
            }
            if !doesCount { over += alert.messages }
        }
        return (StormReason.warnings(counting), StormReason.warnings(others), over)
    }

    private func assess(_ forecast: Forecast, _ second: Forecast?, _ alerts: [AlertEvent], _ now: Date) -> Assessment {
        var assessment = judge(forecast, beside: second, alerts, now: now)
        guard let second else { return assessment }
        assessment.second = second.source
        let other = judge(second, beside: forecast, alerts, now: now)
        let alone = other.reasons.filter { reason in
            !assessment.reasons.contains { $0.kind == reason.kind && $0.from < reason.until && reason.from < $0.until }
        }
        if case .unknown = assessment.verdict, other.verdict == .calm { assessment.verdict = .calm }
        if alone.isEmpty { return assessment }
        assessment.verdict = .stormy
        assessment.reasons = StormReason.sorted(assessment.reasons + alone)
        return assessment
    }

    private func judge(_ forecast: Forecast, beside second: Forecast?, _ alerts: [AlertEvent], now: Date) -> Assessment {
        let horizonEnd = now.addingTimeInterval(Double(horizonHours) * ForecastHour.seconds)
        let hours = forecast.hours.filter { $0.end > now && $0.start < horizonEnd }
        var (found, unconfirmed): ([StormReason], [StormReason]) = ([], [])
        for hour in hours {
            func reason(_ kind: StormReasonKind, _ peak: Double, _ key: StormKey?) -> StormReason {
                StormReason(
                    kind: kind, peak: peak, from: hour.start, until: hour.end, key: key, source: source(of: hour, in: forecast))
            }
            if thunderstorm, let code = hour.weatherCode, WeatherCode.isThunderstorm(code) {
                let alert = confirmation(of: hour, by: alerts)
                let key =
                    confirmation(in: hour) ?? alert.map { .alert($0.issuer) }
                    ?? second.flatMap { confirmation(of: hour, in: forecast, by: $0) }
                var thunder = reason(.thunderstorm, Double(code), key)
                if case .alert = key { thunder.messages = alert?.messages }
                if key == nil { unconfirmed.append(thunder) } else { found.append(thunder) }
            }
            if let gusts = hour.gustsKMH, gusts >= gustsKMH { found.append(reason(.gusts, gusts, .limit(gustsKMH))) }
            if let rain = hour.rainMM, rain >= rainMMPerHour { found.append(reason(.rain, rain, .limit(rainMMPerHour))) }
        }
        let reasons = StormReason.runs(found)
        unconfirmed = StormReason.runs(unconfirmed)
        if !reasons.isEmpty { return Assessment(verdict: .stormy, reasons: reasons, unconfirmed: unconfirmed) }
        if let why = ignorance(of: forecast, within: hours, now: now) {
            return Assessment(verdict: .unknown(why: why), unconfirmed: unconfirmed)
        }
        return Assessment(verdict: .calm, unconfirmed: unconfirmed)
    }

    /// Returns the value of an hour that confirms the hour's thunder.
    private func confirmation(in hour: ForecastHour) -> StormKey? {
        if let rain = hour.rainMM, rain >= Self.confirmingRainMM, hour.cape ?? .infinity >= Self.confirmingCAPE {
            return .rain(mmPerHour: rain, cape: hour.cape)
        }
        if let gusts = hour.gustsKMH, gusts >= confirmingGustsKMH { return .gusts(kmh: gusts) }
        return nil
    }

    /// Returns a warning of thunder for the time of the hour, with any severity. An all-clear does not confirm thunder.
    private func confirmation(of hour: ForecastHour, by alerts: [AlertEvent]) -> (issuer: String, messages: [String])? {
        for alert in alerts {
            let info = alert.infos.first {
                $0.hazard == .thunderstorm && $0.noDanger == nil && $0.from < hour.end && hour.start < $0.until
            }
            if let info { return (info.issuer, alert.messages) }
        }
        return nil
    }

    /// Returns a confirmation if another service forecasts thunder for this hour or for an adjacent hour.
    private func confirmation(of hour: ForecastHour, in forecast: Forecast, by second: Forecast) -> StormKey? {
        let own = source(of: hour, in: forecast)
        let isThere = second.hours.contains { other in
            // A service cannot confirm the thunder in its own forecast.
            !own.contains(other.source ?? second.source) && other.source.map { !own.contains($0) } ?? true
                && abs(other.start.timeIntervalSince(hour.start)) <= ForecastHour.seconds
                && other.weatherCode.map(WeatherCode.isThunderstorm) == true
        }
        return isThere ? .service(second.source) : nil
    }

    /// Returns the names of the services whose values an hour contains.
    private func source(of hour: ForecastHour, in forecast: Forecast) -> String {
        hour.source.map { "\(forecast.source) and \($0)" } ?? forecast.source
    }

    /// Returns whether the values of an hour are sufficient to recognize a storm. If thunderstorms count as a storm, the hour
    /// needs a weather code. The hour does not need gusts, because not every model has gusts, and because the code and the rain
    /// are sufficient.
    func isKnown(_ hour: ForecastHour) -> Bool {
        thunderstorm ? hour.weatherCode != nil : hour.precipitationMM != nil || hour.gustsKMH != nil
    }

    /// Returns whether the hour has thunder that cannot be judged, because the rain of this hour is unknown.
    private func hasThunderAlone(_ hour: ForecastHour) -> Bool {
        thunderstorm && hour.weatherCode.map(WeatherCode.isThunderstorm) == true && hour.rainMM == nil
            && confirmation(in: hour) == nil
    }

    private func ignorance(of forecast: Forecast, within hours: [ForecastHour], now: Date) -> String? {
        guard let first = forecast.hours.first, let last = forecast.hours.last else { return "the forecast contains no hours" }
        if last.end <= now { return "the forecast is too old: it ended \(StormRule.span(now.timeIntervalSince(last.end))) ago" }
        if first.start > now { return "the forecast begins only in \(StormRule.span(first.start.timeIntervalSince(now)))" }
        guard hours.contains(where: { $0.start <= now }) else { return "the forecast has no values for the present hour" }
        // Some services never send amounts of rain, for example the US service in its hourly forecast.
        let hasRainData = hours.contains { $0.rainMM != nil }
        if hasRainData, let hour = hours.first(where: hasThunderAlone) {
            let until = StormRule.span(max(0, hour.start.timeIntervalSince(now)))
            return "thunder is forecast in \(until), but the amount of rain is not known"
        }
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
