import Foundation

extension StormRule {
    /// The number of days, from today, that a request for a forecast has to include. Services with a limit send at most 16 days.
    package var forecastDays: Int { min(16, max(3, (horizonHours + 23) / 24 + 1)) }

    /// Returns the hours up to the horizon for which the forecast has too few values, as ascending windows. Contiguous hours are
    /// joined into one window.
    ///
    /// An hour is unknown if the forecast does not contain the hour, or does not contain a necessary value of the hour. Gusts and
    /// rain are necessary only if the forecast has them for any of these hours, because some services never send them.
    package func unknownHours(in forecast: Forecast, now: Date) -> [StormWindow] {
        let horizonEnd = now.addingTimeInterval(Double(horizonHours) * ForecastHour.seconds)
        let hours = forecast.hours.filter { $0.end > now && $0.start < horizonEnd }
        let hasGusts = hours.contains { $0.gustsKMH != nil }
        let hasRain = hours.contains { $0.rainMM != nil }
        var windows: [StormWindow] = []
        // The beginning of the current hour is taken from the forecast, because in some time zones hours begin at the half hour.
        let current = hours.first { $0.start <= now }?.start
        var start = current ?? Date(timeIntervalSince1970: (now.timeIntervalSince1970 / 3600).rounded(.down) * 3600)
        while start < horizonEnd {
            let hour = hours.first { $0.start <= start && start < $0.end }
            let isComplete = hour.map { hour in
                isKnown(hour) && (!hasGusts || hour.gustsKMH != nil) && (!hasRain || hour.rainMM != nil)
            }
            let end = start.addingTimeInterval(ForecastHour.seconds)
            if isComplete != true {
                if windows.last?.until == start {
                    windows[windows.count - 1].until = end
                } else {
                    windows.append(StormWindow(from: start, until: end))
                }
            }
            start = end
        }
        return windows
    }
}

extension [StormWindow] {
    /// The number of hours in the windows, rounded up.
    package var hourCount: Int {
        Int((reduce(0) { $0 + $1.until.timeIntervalSince($1.from) } / ForecastHour.seconds).rounded(.up))
    }
}

extension Forecast {
    /// Returns this forecast, with some windows filled from the forecast of another service. If both forecasts have a value, the
    /// worse value is used.
    ///
    /// - Parameter windows: windows of complete hours, from ``StormRule/unknownHours(in:now:)``.
    package func filled(_ windows: [StormWindow], from other: Forecast) -> Forecast {
        var byStart = Dictionary(hours.map { ($0.start, $0) }) { first, _ in first }
        for window in windows {
            var start = window.from
            while start < window.until {
                if let filling = other.hour(at: start) { byStart[start] = filling.filling(byStart[start], from: other.source) }
                start += ForecastHour.seconds
            }
        }
        var filled = self
        filled.hours = byStart.values.sorted { $0.start < $1.start }
        return filled
    }

    /// Returns this forecast without the values in the hours that were filled from other services.
    package var unfilled: Forecast {
        var own = self
        own.hours = hours.map { $0.source == nil ? $0 : ForecastHour(start: $0.start) }
        return own
    }

    /// The hours that were filled from other services.
    package var filledHours: [(window: StormWindow, source: String)] {
        var found: [(window: StormWindow, source: String)] = []
        for hour in hours {
            guard let source = hour.source else { continue }
            if let last = found.last, last.source == source, last.window.until == hour.start {
                found[found.count - 1].window.until = hour.end
            } else {
                found.append((StormWindow(from: hour.start, until: hour.end), source))
            }
        }
        return found
    }

    /// Returns the hour that begins at `start`. If the service's hours begin at other minutes, the result has the worse values of
    /// the two hours around `start`.
    private func hour(at start: Date) -> ForecastHour? {
        let end = start.addingTimeInterval(ForecastHour.seconds)
        let found = hours.filter { $0.start < end && start < $0.end }
        guard let first = found.first, let last = found.last, first.start <= start, last.end >= end else { return nil }
        var hour = found.dropFirst().reduce(first) { $1.worse($0) }
        hour.start = start
        return hour
    }
}

extension ForecastHour {
    /// Returns this hour of another service, combined with the known values of the forecast's own service.
    fileprivate func filling(_ own: ForecastHour?, from source: String) -> ForecastHour? {
        guard weatherCode != nil || rainMM != nil || gustsKMH != nil else { return own }
        var hour = own.map(worse) ?? self
        hour.source = own?.source.map { "\($0) and \(source)" } ?? source
        return hour
    }

    /// Returns this hour with values of another hour. A value of the other hour is used if it is worse, or if this hour does not
    /// have the value. An hour with thunder keeps the values that decide about thunder.
    fileprivate func worse(_ other: ForecastHour) -> ForecastHour {
        func isThunder(_ code: Int?) -> Bool { code.map(WeatherCode.isThunderstorm) ?? false }
        let decides = weatherCode == nil || isThunder(other.weatherCode) && !isThunder(weatherCode) ? other : self
        var hour = self
        hour.weatherCode = [weatherCode, other.weatherCode].compactMap { $0 }.max()
        hour.precipitationMM = [precipitationMM, other.precipitationMM].compactMap { $0 }.max()
        hour.showersMM = [showersMM, other.showersMM].compactMap { $0 }.max()
        hour.precipitationProbability = [precipitationProbability, other.precipitationProbability].compactMap { $0 }.max()
        hour.gustsKMH = [gustsKMH, other.gustsKMH].compactMap { $0 }.max()
        hour.temperatureC = temperatureC ?? other.temperatureC
        (hour.cape, hour.convectiveInhibition, hour.liftedIndex) = (
            decides.cape, decides.convectiveInhibition, decides.liftedIndex
        )
        return hour
    }
}
