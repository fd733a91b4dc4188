import Foundation

/// One hour of a forecast. A value the service did not give, or gave as nonsense, is nil.
///
/// The values are those the service lists under ``start``. Open-Meteo means precipitation and gusts as sum and
/// maximum of the hour *before* its mark; they are not shifted here, so that an hour reads as in the answer.
package struct ForecastHour: Sendable, Equatable, Codable {
    /// When the hour begins.
    package var start: Date
    /// WMO weather code, 0...99; see ``WeatherCode``.
    package var weatherCode: Int?
    /// Precipitation of every kind in millimetres.
    package var precipitationMM: Double?
    /// What of it falls as showers, in millimetres.
    package var showersMM: Double?
    /// Chance of precipitation in percent.
    package var precipitationProbability: Double?
    /// Wind gusts at 10 m in km/h.
    package var gustsKMH: Double?
    /// Air temperature at 2 m in °C.
    package var temperatureC: Double?
    /// Convective available potential energy in J/kg: what the air would give a thunderstorm.
    package var cape: Double?
    /// Convective inhibition in J/kg, positive: what holds a thunderstorm back.
    package var convectiveInhibition: Double?
    /// Lifted index in K: below zero the air is unstable.
    package var liftedIndex: Double?
    /// The service that filled this hour; `nil` if the values are the forecast's.
    package var source: String?

    /// When the hour ends.
    package var end: Date { start.addingTimeInterval(ForecastHour.seconds) }

    /// Precipitation of every kind: some models give one of the two alone.
    var rainMM: Double? { [precipitationMM, showersMM].compactMap { $0 }.max() }

    /// The length of an hour, in seconds.
    package static let seconds: TimeInterval = 3600

    /// An hour with the values that are known.
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

/// The coming hours at one place.
package struct Forecast: Sendable, Equatable, Codable {
    /// The place's offset from GMT when the answer was made, in seconds.
    package var utcOffsetSeconds: Int
    /// The place's time zone (IANA), when the service names it.
    package var timeZoneIdentifier: String?
    /// Hours in ascending order, no start twice; there may be gaps.
    package var hours: [ForecastHour]
    /// Whom to credit, "Open-Meteo".
    package var source: String
    /// When the service made it, as it says itself; `nil`: it does not.
    package var issuedAt: Date?
    /// Values that the service gave in a form that cannot be read: in an unknown unit, or larger than any weather. `nil` if there are none.
    package var unreadable: [StormValue]?

    /// A forecast from its parts; `hours` must be ascending.
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

    /// Hours behind and before a moment that anybody asks about: a service may answer with years of them.
    private static let keptHours = (before: 48.0, after: 16 * 24.0)

    static func keptSpan(around now: Date) -> ClosedRange<Date> {
        now - keptHours.before * ForecastHour.seconds...now + keptHours.after * ForecastHour.seconds
    }

    /// Without the hours that nobody asks about. One of another time keeps the day that is nearest: it says what is wrong with it.
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
