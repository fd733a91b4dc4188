import Foundation

/// The state of a storm's notification when a check reads it.
package struct StormNotificationState: Sendable, Equatable {
    package enum State: Sendable, Equatable {
        /// The storm has no notification.
        case none
        /// The notification was not shown yet, because no notification server is running, because of quiet hours, or because the
        /// do-not-disturb mode hides the notification.
        case waiting
        /// The notification is on the screen, or the notification server removed the notification before the user responded.
        case visible
        /// The user postponed the notification.
        case snoozed
        /// The user closed or selected the notification.
        case dismissed
        /// The notification was removed from the screen at the end of its storm.
        case ended
        /// The notification was withdrawn before the user saw it.
        case unseen
        /// The notification was withdrawn after the user saw it.
        case withdrawn

        /// `true` if the user saw the notification.
        package var isSeen: Bool {
            switch self {
            case .visible, .snoozed, .dismissed, .ended, .withdrawn: true
            case .none, .waiting, .unseen: false
            }
        }
    }

    package var state: State
    /// The copy of the storm's state that the notification contains. `nil` if the storm has no notification, or if an earlier
    /// version of Stormy added the notification.
    package var memory: StormLife.Memory?
    /// `true` if the user added a photo of the storm.
    package var hasPhoto: Bool

    /// Creates the state from its parts.
    package init(_ state: State, memory: StormLife.Memory? = nil, hasPhoto: Bool = false) {
        (self.state, self.memory, self.hasPhoto) = (state, memory, hasPhoto)
    }
}

/// The data of one check at one place: the assessment, and the forecast if it can show that a storm is not expected.
package struct StormCheckData: Sendable, Equatable {
    /// The result for a reason of a known storm, if the newest assessment does not contain this reason.
    enum ReasonVerdict: Sendable, Equatable {
        /// No data about this reason was received, or the data is too old.
        case unknown
        /// The value is between 80 % and 100 % of the limit, with this peak.
        case weaker(Double)
        case denied
    }

    /// The maximum age in seconds of a downloaded forecast that can show that a storm is no longer expected.
    package static let longestAge: Double = 3 * 3600
    /// The maximum age in seconds of the data in a forecast that can show that a storm is no longer expected. The age is counted
    /// from the time when the service made the forecast.
    package static let longestIssue: Double = 12 * 3600
    /// A fraction of a limit. If a value is below this fraction of its limit, the storm is not expected.
    package static let denyingPart = 0.8

    let assessment: Assessment
    let rule: StormRule
    /// The forecast. `nil` if no forecast was received, or if the forecast is too old to show that a storm is not expected.
    let forecast: Forecast?
    package let now: Date

    /// Creates the data from its parts.
    ///
    /// - Parameters:
    ///   - forecast: The forecast that was assessed. `nil` if the services could not be requested.
    ///   - fetchedAt: The time when the forecast was received.
    package init(_ assessment: Assessment, rule: StormRule, forecast: Forecast? = nil, fetchedAt: Date? = nil, now: Date) {
        (self.assessment, self.rule, self.now) = (assessment, rule, now)
        let isFetched = fetchedAt.map { (0...Self.longestAge).contains(now.timeIntervalSince($0)) } ?? false
        let isNew = forecast?.issuedAt.map { now.timeIntervalSince($0) <= Self.longestIssue } ?? true
        self.forecast = isFetched && isNew ? forecast : nil
    }

    /// Returns the verdict on a reason that the new assessment does not contain.
    ///
    /// - Parameter window: The hours of the reason's storm.
    func word(on reason: StormReason, in window: StormWindow) -> ReasonVerdict {
        let isCancelled = !Set(reason.messages ?? []).isDisjoint(with: assessment.cancelled ?? [])
        if reason.hangsOnWarnings, isCancelled || rule.alertSeverity == .off { return .denied }
        guard reason.kind != .alert else { return Int(reason.peak) < rule.alertSeverity.rank ? .denied : .unknown }
        guard let hours = hours(of: window) else { return .unknown }
        switch reason.kind {
        case .alert: return .unknown
        case .gusts: return Self.word(hours.map(\.gustsKMH), limit: rule.gustsKMH)
        case .rain: return Self.word(hours.map(\.rainMM), limit: rule.rainMMPerHour)
        case .thunderstorm: return thunder(hours)
        }
    }

    /// Returns the remaining hours of a storm. `nil` if the forecast does not cover all of these hours.
    private func hours(of window: StormWindow) -> [ForecastHour]? {
        guard let forecast else { return nil }
        let from = max(now, window.from)
        let hours = forecast.hours.filter { $0.end > from && $0.start < window.until }
        var reached = from
        for hour in hours {
            if hour.start > reached { return nil }
            reached = max(reached, hour.end)
        }
        return reached >= window.until ? hours : nil
    }

    private static func word(_ values: [Double?], limit: Double) -> ReasonVerdict {
        let known = values.compactMap { $0 }
        guard known.count == values.count, let peak = known.max() else { return .unknown }
        return peak < limit * denyingPart ? .denied : .weaker(peak)
    }

    private func thunder(_ hours: [ForecastHour]) -> ReasonVerdict {
        if !rule.thunderstorm { return .denied }
        guard hours.allSatisfy({ $0.weatherCode != nil }) else { return .unknown }
        let stormy = hours.filter { WeatherCode.isThunderstorm($0.weatherCode ?? 0) }
        let peak = stormy.compactMap(\.weatherCode).max().map(Double.init)
        guard let peak else { return .denied }
        // Thunder counts only with rain or gusts. For this reason, thunder is not expected if rain and gusts are known to be far
        // below their limits.
        let isFar = stormy.allSatisfy { hour in
            guard let rain = hour.rainMM else { return false }
            let isDry =
                rain < StormRule.confirmingRainMM * Self.denyingPart || hour.cape.map { $0 < StormRule.confirmingCAPE } == true
            return isDry && (hour.gustsKMH ?? 0) < rule.confirmingGustsKMH * Self.denyingPart
        }
        return isFar ? .denied : .weaker(peak)
    }
}

extension StormReason {
    /// Returns whether another reason is a newer version of this reason.
    func isReplaced(by other: StormReason) -> Bool {
        guard kind == other.kind else { return false }
        return kind != .alert || !Set(messages ?? []).isDisjoint(with: other.messages ?? []) || messages == nil
    }
}
