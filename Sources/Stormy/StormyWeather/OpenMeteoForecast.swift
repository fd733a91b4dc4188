import Foundation

extension OpenMeteo {
    /// Reads the answer to ``forecastURL(for:baseURL:)``, tolerant in details and strict in the whole.
    ///
    /// Accepted: null anywhere, arrays of unequal length (the shortest counts), unix times and local ISO 8601 times,
    /// `weathercode` for `weather_code`, other units (converted), a list with one place, missing gusts. Values no
    /// weather can have are treated as null. An answer that is not complete JSON is an error, never a calm sky.
    /// - Parameters:
    ///   - data: the body, decompressed, at most ``maximumAnswerBytes``.
    ///   - status: the HTTP status.
    package static func parseForecast(_ data: Data, status: Int = 200) throws(WeatherError) -> Forecast {
        var answer = try ServiceAnswer.json(data, status: status)
        if let places = answer.elements {
            // Several places turn the answer into a list; we ask for one.
            guard let only = places.first, places.count == 1 else { throw .noData }
            answer = only
        }
        guard let hourly = answer["hourly"], let times = hourly["time"]?.elements else { throw .noData }
        let offset = plausible(answer["utc_offset_seconds"]?.finite, in: -64_800...64_800).map { Int($0) }
        let zone = answer["timezone"]?.text
        // Local times without an offset cannot be placed; guessing could move a storm by half a day.
        let localOffset = offset ?? (zone == "GMT" || zone == "UTC" ? 0 : nil)
        let columns = Columns(hourly: hourly, units: answer["hourly_units"])
        let count = ([times.count] + columns.lengths).min() ?? 0
        var hours: [Date: ForecastHour] = [:]
        for index in 0..<count {
            guard let start = HourMark.date(times[index], utcOffset: localOffset) else { continue }
            let hour = columns.hour(at: index, start: start)
            guard hour.hasValue, hours[start] == nil else { continue }
            hours[start] = hour
        }
        guard !hours.isEmpty else { throw .noData }
        return Forecast(
            utcOffsetSeconds: offset ?? 0, timeZoneIdentifier: zone,
            hours: hours.values.sorted { $0.start < $1.start }, source: source)
    }

    static func plausible(_ value: Double?, in range: ClosedRange<Double>) -> Double? {
        guard let value, range.contains(value) else { return nil }
        return value
    }
}

extension ForecastHour {
    /// The rest only says more about these.
    fileprivate var hasValue: Bool {
        weatherCode != nil || precipitationMM != nil || gustsKMH != nil || temperatureC != nil
    }
}

/// The parallel arrays of `hourly`, each with its spelling and unit resolved.
private struct Columns {
    private let codes: Column?
    private let precipitation: Column?
    private let showers: Column?
    private let probability: Column?
    private let gusts: Column?
    private let temperature: Column?
    private let cape: Column?
    private let inhibition: Column?
    private let liftedIndex: Column?

    init(hourly: JSONValue, units: JSONValue?) {
        /// The array and its unit under the first spelling that has values; an empty array is a missing one.
        func column(_ names: String..., converted: (String?) -> ((Double) -> Double)? = { _ in { $0 } }) -> Column? {
            for name in names {
                guard let values = hourly[name]?.elements, !values.isEmpty else { continue }
                return Column(values: values, conversion: converted(units?[name]?.text))
            }
            return nil
        }
        codes = column("weather_code", "weathercode")
        precipitation = column("precipitation", converted: Columns.millimetres)
        showers = column("showers", converted: Columns.millimetres)
        probability = column("precipitation_probability")
        gusts = column("wind_gusts_10m", "windgusts_10m", converted: Columns.kilometresPerHour)
        temperature = column("temperature_2m", converted: Columns.celsius)
        cape = column("cape")
        inhibition = column("convective_inhibition")
        liftedIndex = column("lifted_index")
    }

    /// Of what makes an hour. Of the others a missing value is just that.
    var lengths: [Int] { [codes, precipitation, gusts, temperature].compactMap { $0?.values.count } }

    /// The hour at `index`. The limits are a little beyond the records ever measured (401 mm in an hour, gusts of
    /// 408 km/h, -89 and 57 °C): more is a broken model or a fill value such as 9999.
    func hour(at index: Int, start: Date) -> ForecastHour {
        ForecastHour(
            start: start, weatherCode: codes?.value(index, in: 0...99).flatMap { Int(exactly: $0) },
            precipitationMM: precipitation?.value(index, in: 0...500), showersMM: showers?.value(index, in: 0...500),
            precipitationProbability: probability?.value(index, in: 0...100), gustsKMH: gusts?.value(index, in: 0...500),
            temperatureC: temperature?.value(index, in: -100...70), cape: cape?.value(index, in: 0...15_000),
            // Some models write what holds back as a negative number.
            convectiveInhibition: inhibition?.value(index, in: -5000...5000).map { abs($0) },
            liftedIndex: liftedIndex?.value(index, in: -50...100))
    }

    /// No unit given means the one we asked for; a unit we do not know makes the values unknown, not wrong.
    private static func kilometresPerHour(from unit: String?) -> ((Double) -> Double)? {
        switch unit {
        case nil, "km/h": { $0 }
        case "m/s", "ms": { $0 * 3.6 }
        case "mp/h", "mph": { $0 * 1.609344 }
        case "kn", "kt": { $0 * 1.852 }
        default: nil
        }
    }

    private static func millimetres(from unit: String?) -> ((Double) -> Double)? {
        switch unit {
        case nil, "mm": { $0 }
        case "inch": { $0 * 25.4 }
        default: nil
        }
    }

    private static func celsius(from unit: String?) -> ((Double) -> Double)? {
        unit == "°F" ? { ($0 - 32) / 1.8 } : { $0 }
    }
}

/// One array of `hourly`.
private struct Column {
    let values: [JSONValue]
    /// To our unit; `nil`: from a unit that is not known.
    let conversion: ((Double) -> Double)?

    /// `nil`: no number, or one that no weather can have.
    func value(_ index: Int, in range: ClosedRange<Double>) -> Double? {
        guard let conversion, values.indices.contains(index) else { return nil }
        return OpenMeteo.plausible(values[index].finite.map(conversion), in: range)
    }
}

/// Times as the service writes them.
private enum HourMark {
    /// 1970...2200; beyond it is nonsense.
    private static let range = 0.0...7_258_118_400.0

    static func date(_ value: JSONValue, utcOffset: Int?) -> Date? {
        // Unix times are GMT: the offset is for naming days, not for adding.
        if let seconds = value.finite { return instant(seconds) }
        guard let text = value.text, let local = secondsFromEpoch(text), let utcOffset else { return nil }
        return instant(local - Double(utcOffset))
    }

    private static func instant(_ seconds: Double) -> Date? {
        OpenMeteo.plausible(seconds, in: range).map { Date(timeIntervalSince1970: $0) }
    }

    /// Reads `2026-02-06T16:30` (seconds allowed) as if it were GMT. By hand: a calendar would consult the process's
    /// time zone, and the service's local times have one fixed offset, also across a clock change.
    private static func secondsFromEpoch(_ text: String) -> Double? {
        let halves = text.split(separator: "T", omittingEmptySubsequences: false)
        guard halves.count == 2 else { return nil }
        let day = halves[0].split(separator: "-", omittingEmptySubsequences: false).map { number($0) }
        let clock = halves[1].split(separator: ":", omittingEmptySubsequences: false).map { number($0) }
        guard day.count == 3, (2...3).contains(clock.count),
            let year = day[0], let month = day[1], let date = day[2], let hour = clock[0], let minute = clock[1],
            let second = clock.count == 3 ? clock[2] : 0,
            (1970...2200).contains(year), (1...12).contains(month), (1...31).contains(date),
            (0...23).contains(hour), (0...59).contains(minute), (0...59).contains(second)
        else { return nil }
        return Double(days(year, month, date) * 86_400 + hour * 3600 + minute * 60 + second)
    }

    private static func number(_ digits: Substring) -> Int? {
        guard (1...4).contains(digits.utf8.count), digits.allSatisfy({ ("0"..."9").contains($0) }) else { return nil }
        return Int(digits)
    }

    /// Days from 1970-01-01 in the Gregorian calendar, years counted from March so that a leap day comes last.
    private static func days(_ year: Int, _ month: Int, _ day: Int) -> Int {
        let shifted = month <= 2 ? year - 1 : year
        let yearOfEra = shifted % 400
        let dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
        let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
        return shifted / 400 * 146_097 + dayOfEra - 719_468
    }
}
