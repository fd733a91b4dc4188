import Foundation

/// One hour of a forecast. A value the service did not give, or gave as nonsense, is nil.
///
/// The values are those the service lists under ``start``. Open-Meteo means precipitation and gusts as sum and
/// maximum of the hour *before* its mark; they are not shifted here, so that an hour reads as in the answer.
public struct ForecastHour: Sendable, Equatable, Codable {
    /// When the hour begins.
    public var start: Date
    /// WMO weather code, 0...99; see ``WeatherCode``.
    public var weatherCode: Int?
    /// Precipitation in millimetres.
    public var precipitationMM: Double?
    /// Wind gusts at 10 m in km/h.
    public var gustsKMH: Double?
    /// Air temperature at 2 m in °C.
    public var temperatureC: Double?

    /// When the hour ends.
    public var end: Date { start.addingTimeInterval(ForecastHour.seconds) }

    /// The length of an hour, in seconds.
    public static let seconds: TimeInterval = 3600

    /// An hour with the values that are known.
    public init(
        start: Date, weatherCode: Int? = nil, precipitationMM: Double? = nil,
        gustsKMH: Double? = nil, temperatureC: Double? = nil
    ) {
        self.start = start
        self.weatherCode = weatherCode
        self.precipitationMM = precipitationMM
        self.gustsKMH = gustsKMH
        self.temperatureC = temperatureC
    }
}

/// The coming hours at one place.
public struct Forecast: Sendable, Equatable, Codable {
    /// The place's offset from GMT when the answer was made, in seconds.
    public var utcOffsetSeconds: Int
    /// The place's time zone (IANA), when the service names it.
    public var timeZoneIdentifier: String?
    /// Hours in ascending order, no start twice; there may be gaps.
    public var hours: [ForecastHour]
    /// Whom to credit, "Open-Meteo".
    public var source: String

    /// A forecast from its parts; `hours` must be ascending.
    public init(
        utcOffsetSeconds: Int = 0, timeZoneIdentifier: String? = nil,
        hours: [ForecastHour], source: String = OpenMeteo.source
    ) {
        self.utcOffsetSeconds = utcOffsetSeconds
        self.timeZoneIdentifier = timeZoneIdentifier
        self.hours = hours
        self.source = source
    }
}
