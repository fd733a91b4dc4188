import Foundation

/// An hour of a forecast. A value is `nil` if the service did not send the value, or sent an impossible value.
///
/// Each value is the value that the service lists for ``start``. Open-Meteo's precipitation is the sum of the hour *before* this
/// time, and Open-Meteo's gusts are the maximum of the same hour. These values are not shifted, so that each hour has the same
/// values as in the response.
package struct ForecastHour: Sendable, Equatable, Codable {
    /// The beginning of the hour.
    package var start: Date
    /// The WMO weather code, 0...99. See ``WeatherCode``.
    package var weatherCode: Int?
    /// Precipitation of every kind in millimetres.
    package var precipitationMM: Double?
    /// The part of the precipitation that falls as showers, in millimetres.
    package var showersMM: Double?
    /// The probability of precipitation in percent.
    package var precipitationProbability: Double?
    /// The wind gusts at a height of 10 m in km/h.
    package var gustsKMH: Double?
    /// The air temperature at a height of 2 m in °C.
    package var temperatureC: Double?
    /// The convective available potential energy (CAPE) in J/kg: the energy that is available for a thunderstorm.
    package var cape: Double?
    /// The convective inhibition in J/kg, as a positive number: the energy that prevents a thunderstorm.
    package var convectiveInhibition: Double?
    /// The lifted index in K. The air is unstable if the value is below zero.
    package var liftedIndex: Double?
    /// The name of the other service whose values fill this hour. `nil` if all values are from the forecast's service.
    package var source: String?

    /// The end of the hour.
    package var end: Date { start.addingTimeInterval(ForecastHour.seconds) }

    /// Precipitation of every kind. The value is the greater value of precipitation and showers, because some models send only
    /// one of these values.
    var rainMM: Double? { [precipitationMM, showersMM].compactMap { $0 }.max() }

    /// The length of an hour, in seconds.
    package static let seconds: TimeInterval = 3600

    /// Creates an hour with the known values.
    package init(
        start: Date, weatherCode: Int? = nil, precipitationMM: Double? = nil, showersMM: Double? = nil,
        precipitationProbability: Double? = nil, gustsKMH: Double? = nil, temperatureC: Double? = nil, cape: Double? = nil,
        convectiveInhibition: Double? = nil, liftedIndex: Double? = nil
    ) {
        self.start = start
        self.weatherCode = weatherCode
        self.precipitationMM = precipitationMM
        self.showersMM = showersMM
        self.precipitationProbability = precipitationProbability
        self.gustsKMH = gustsKMH
        self.temperatureC = temperatureC
        self.cape = cape
        self.convectiveInhibition = convectiveInhibition
        self.liftedIndex = liftedIndex
    }
}

/// A forecast for one place, hour by hour.
package struct Forecast: Sendable, Equatable, Codable {
    /// The place's offset from GMT at the time of the response, in seconds.
    package var utcOffsetSeconds: Int
    /// The place's time zone (IANA). `nil` if the service does not send the time zone.
    package var timeZoneIdentifier: String?
    /// The hours in ascending order. Each hour has a different start. The forecast may not contain every hour of its period.
    package var hours: [ForecastHour]
    /// The name of the service that is credited, for example "Open-Meteo".
    package var source: String
    /// The time at which the service made the forecast, according to the service. `nil` if the service does not send this time.
    package var issuedAt: Date?
    /// The values of the service that cannot be read, because their unit is unknown or they are impossibly large. `nil` if all
    /// values can be read.
    package var unreadable: [StormValue]?

    /// Creates a forecast from its parts. The hours must be in ascending order.
    package init(
        utcOffsetSeconds: Int = 0, timeZoneIdentifier: String? = nil,
        hours: [ForecastHour], source: String = OpenMeteo.source, issuedAt: Date? = nil, unreadable: Set<StormValue> = []
    ) {
        self.utcOffsetSeconds = utcOffsetSeconds
        self.timeZoneIdentifier = timeZoneIdentifier
        self.hours = hours
        self.source = source
        self.issuedAt = issuedAt
        self.unreadable = unreadable.isEmpty ? nil : StormValue.allCases.filter(unreadable.contains)
    }

    /// The number of hours before the current time, and the number of hours after the current time, that are used. The limit is
    /// necessary because some services send the hours of several years.
    private static let keptHours = (before: 48.0, after: 16 * 24.0)

    static func keptSpan(around now: Date) -> ClosedRange<Date> {
        now - keptHours.before * ForecastHour.seconds...now + keptHours.after * ForecastHour.seconds
    }

    /// Returns the forecast without hours that are not used. If all hours are far from `now`, the nearest day is kept, because
    /// the error message contains the time of that day.
    package func trimmed(around now: Date) -> Forecast {
        let span = Self.keptSpan(around: now)
        var trimmed = self
        trimmed.hours = hours.filter { span.contains($0.start) }
        if trimmed.hours.isEmpty {
            trimmed.hours = Array((hours.first?.start ?? now) > now ? hours.prefix(24) : hours.suffix(24))
        }
        return trimmed
    }
}
