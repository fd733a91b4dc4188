import Foundation

/// A service with official warnings for a place.
package enum AlertService: String, Sendable, CaseIterable, Codable {
    /// MET Norway's MetAlerts 2.0, which covers Norway and its seas.
    case metNorway = "met-norway"
    /// The US National Weather Service.
    case nws
    /// The Deutscher Wetterdienst, through Bright Sky.
    case brightSky = "bright-sky"
    /// EUMETNET's MeteoAlarm: 38 European countries and Israel. ``MeteoAlarmFeed`` reads its feeds, and ``read(_:status:now:)``
    /// reads the document of a warning.
    case meteoAlarm = "meteoalarm"

    /// Creates the service from the name of a source in the store. Returns `nil` if the source is a feed that the user
    /// configured.
    package init?(key: String) {
        guard let service = MeteoAlarmCountry(key: key) == nil ? AlertService(rawValue: key) : .meteoAlarm else { return nil }
        self = service
    }

    /// `true` if the service refuses requests without a contact in the User-Agent. Source of the rule: the terms of MET Norway.
    /// The US service accepts a User-Agent with only the name of the program.
    package var needsContact: Bool { self == .metNorway }

    /// The name for users.
    package var name: String {
        switch self {
        case .metNorway: MetNorway().source
        case .nws: NationalWeatherService().source
        case .brightSky: BrightSky().source
        case .meteoAlarm: "MeteoAlarm"
        }
    }

    /// Returns the names of the services to which a warning is credited.
    ///
    /// - Parameter issuer: the service that issued the warning.
    package func attribution(issuer: String) -> String {
        switch self {
        case .meteoAlarm: issuer.isEmpty ? MeteoAlarmFeed.attribution : "\(issuer), \(MeteoAlarmFeed.attribution)"
        default: issuer.isEmpty ? name : issuer
        }
    }

    /// The minimum number of seconds between two requests. Source of the rule: MetAlerts' documentation.
    package var leastInterval: TimeInterval { self == .metNorway ? 600 : 0 }

    package func covers(_ place: Coordinates) -> Bool {
        switch self {
        case .metNorway: ServiceOutline.norwayContains(place)
        case .nws: NationalWeatherService().covers(place)
        case .brightSky: BrightSky().covers(place) && Self.isGerman(place)
        case .meteoAlarm: !RegionCoverage(of: place).countries.isEmpty
        }
    }

    /// Returns `false` if the place is clearly in another country. Places near the border also count as German, because the
    /// outlines are coarse. Outside Germany, Bright Sky responds with 404.
    private static func isGerman(_ place: Coordinates) -> Bool {
        let countries = RegionCoverage(of: place).countries
        return countries.isEmpty || countries.contains(.germany)
            || RegionTable.europe.hasLand(of: .germany, within: borderKilometres, of: place)
    }

    /// The number of kilometres outside of a country's outlines at which a place may still be in the country. For example, the
    /// town Kehl is 4.2 km outside of the outlines of Germany.
    private static let borderKilometres = 10.0

    /// Returns the requests for one place. For MeteoAlarm, one feed is requested for each country whose regions contain the
    /// place.
    ///
    /// - Throws: ``WeatherRequestError/invalidBaseURL(_:)``
    package func requests(for place: Coordinates, baseURL: String? = nil) throws(WeatherRequestError) -> [WeatherRequest] {
        guard self == .meteoAlarm else { return [try request(for: place, baseURL: baseURL)] }
        var requests: [WeatherRequest] = []
        for country in RegionCoverage(of: place).countries {
            requests.append(try MeteoAlarmFeed.request(for: country, baseURL: baseURL))
        }
        return requests
    }

    /// Returns the request for one place. Requests for the same place are equal. For MeteoAlarm, this is the request of the first
    /// feed.
    ///
    /// - Throws: ``WeatherRequestError``
    package func request(for place: Coordinates, baseURL: String? = nil) throws(WeatherRequestError) -> WeatherRequest {
        let (latitude, longitude) = (Coordinates.decimal(place.latitude), Coordinates.decimal(place.longitude))
        switch self {
        case .metNorway:
            let address = ServiceAddress("https://api.met.no", replacement: baseURL)
            return WeatherRequest(
                url: try address.url("/weatherapi/metalerts/2.0/current.json") + "?lat=\(latitude)&lon=\(longitude)&lang=en")
        case .nws:
            let address = ServiceAddress("https://api.weather.gov", replacement: baseURL)
            return WeatherRequest(
                url: try address.url("/alerts/active") + "?point=\(place.text)", headers: ["Accept": "application/geo+json"])
        case .brightSky:
            let address = ServiceAddress("https://api.brightsky.dev", replacement: baseURL)
            return WeatherRequest(url: try address.url("/alerts") + "?lat=\(latitude)&lon=\(longitude)&tz=Etc/UTC")
        case .meteoAlarm:
            guard let request = try requests(for: place, baseURL: baseURL).first else { throw .notCovered }
            return request
        }
    }

    /// Returns the request for the time of the service's data. `nil` if the service sends this time with its warnings, or never
    /// sends this time.
    ///
    /// Source of the rule: brightsky.dev. The response of `/alerts` contains no time. The response of `/current_weather` contains
    /// the time of the newest record of each station.
    ///
    /// - Throws: ``WeatherRequestError/invalidBaseURL(_:)``
    package func dataTimeRequest(
        for place: Coordinates, baseURL: String? = nil
    ) throws(WeatherRequestError) -> WeatherRequest? {
        guard self == .brightSky else { return nil }
        let (latitude, longitude) = (Coordinates.decimal(place.latitude), Coordinates.decimal(place.longitude))
        let address = ServiceAddress("https://api.brightsky.dev", replacement: baseURL)
        return WeatherRequest(url: try address.url("/current_weather") + "?lat=\(latitude)&lon=\(longitude)&tz=Etc/UTC")
    }

    /// Reads the response to ``dataTimeRequest(for:baseURL:)``.
    ///
    /// - Returns: the time of the service's data, or `nil` if the response does not contain this time. The record of a forecast
    ///   is ignored, because its time is in the future.
    package func dataTime(_ data: Data, status: Int) -> Date? {
        let sources = (try? ServiceResponse.json(data, status: status))?["sources"]?.elements ?? []
        return sources.filter { $0["observation_type"]?.text != "forecast" }.compactMap { ServiceTime.date($0["last_record"]) }
            .max()
    }

    /// The warnings in a response.
    package struct Warnings: Sendable, Equatable {
        /// The messages, without tests, exercises and drafts.
        package var messages: [AlertMessage]
        /// The number of warnings that cannot be read. If a warning is not in ``messages``, the warning may be one of these
        /// unreadable warnings.
        package var unreadable: Int
        /// The time of the data according to the service (see ``DataTime``). `nil` if the response does not contain this time.
        package var dataTime: Date?
    }

    /// Reads the warnings in a response. If a response contains no warnings, the list is empty, which is not an error.
    ///
    /// - Throws: ``WeatherError``
    package func read(_ data: Data, status: Int, now: Date) throws(WeatherError) -> Warnings {
        if self == .meteoAlarm { return try Self.document(data, status: status) }
        let answer = try ServiceResponse.jsonOfAPlace(data, status: status)
        let list = answer[self == .brightSky ? "alerts" : "features"] ?? answer["@graph"]
        guard let elements = list?.elements else { throw .notCAP }
        var result = Warnings(messages: [], unreadable: 0, dataTime: ServiceTime.date(answer["updated"]))
        for element in elements where Self.isActual(element) {
            let message: AlertMessage? =
                switch self {
                case .metNorway: Self.metAlert(element, now)
                case .nws: Self.usAlert(element)
                case .brightSky: Self.germanAlert(element)
                case .meteoAlarm: nil
                }
            if let message, message.cornerCount <= CAPDocument.mostCorners {
                result.messages.append(message)
            } else {
                result.unreadable += 1
            }
        }
        return result
    }

    /// Returns whether a warning is real. A warning without a status, or with an unknown status, counts as real.
    private static func isActual(_ element: JSONValue) -> Bool {
        CAPDocument.isActual((element["properties"] ?? element)["status"]?.text) ?? true
    }

    /// Reads one document that a feed of MeteoAlarm links to.
    private static func document(_ data: Data, status: Int) throws(WeatherError) -> Warnings {
        switch status {
        case 200...299: Warnings(messages: try CAPDocument.parse(data).map { [$0] } ?? [], unreadable: 0)
        case 304: throw .notModified
        case 429: throw .rateLimited(reason: "")
        default: throw .service(status: status, reason: "")
        }
    }

    // MARK: Fields of the services

    private static func severity(_ warning: JSONValue) -> SeverityEvidence {
        SeverityEvidence(
            name: warning["severity"]?.text, urgency: warning["urgency"]?.text, certainty: warning["certainty"]?.text,
            responses: [warning["response"]?.text, warning["response_type"]?.text].compactMap { $0 },
            awarenessLevels: [warning["awareness_level"]?.text].compactMap { $0 })
    }

    private static func metAlert(_ feature: JSONValue, _ now: Date) -> AlertMessage? {
        guard let properties = feature["properties"], let identifier = properties["id"]?.text,
            let interval = feature["when"]?["interval"]?.elements, interval.count == 2, let from = ServiceTime.date(interval[0])
        else { return nil }
        let end = HazardEnd(
            from: from, ends: ServiceTime.date(properties["eventEndingTime"]), expires: ServiceTime.date(interval[1]))
        let evidence = HazardEvidence(
            events: texts(properties, "event", "eventAwarenessName"), headlines: texts(properties, "title"),
            awarenessTypes: texts(properties, "awareness_type"),
            categories: ["Met"], isForSea: properties["geographicDomain"]?.text == "marine")
        let name = (properties["eventAwarenessName"]?.text ?? "").singleLine(limit: HazardEvidence.longestName)
        var info = AlertInfo(
            event: name.isEmpty ? evidence.eventName : name, hazard: evidence.hazard, severity: nil, from: from,
            until: end.until, hasOpenEnd: end.isOpen, sent: now, issuer: "MET Norway",
            areas: areas(feature["geometry"], properties["area"]?.text),
            texts: AlertTexts(
                headline: properties["title"]?.text, description: properties["description"]?.text,
                instruction: properties["instruction"]?.text))
        info.add(severity(properties))
        return AlertMessage(
            identifier: identifier, sent: now,
            kind: AlertMessage.Kind(rawValue: properties["type"]?.text?.lowercased() ?? "") ?? .alert,
            infos: [info])
    }

    private static func usAlert(_ feature: JSONValue) -> AlertMessage? {
        let properties = feature["properties"] ?? feature
        guard let identifier = properties["id"]?.text ?? properties["identifier"]?.text,
            let sent = ServiceTime.date(properties["sent"]),
            let kind = AlertMessage.Kind(rawValue: properties["messageType"]?.text?.lowercased() ?? "")
        else { return nil }
        let from = ServiceTime.date(properties["onset"]) ?? ServiceTime.date(properties["effective"]) ?? sent
        let end = HazardEnd(
            from: from, ends: ServiceTime.date(properties["ends"]), expires: ServiceTime.date(properties["expires"]), sent: sent,
            eventCodes: (properties["parameters"]?["VTEC"]?.elements ?? []).compactMap(\.text))
        let references = (properties["references"]?.elements ?? []).compactMap { $0["identifier"]?.text }
        let expired = (properties["parameters"]?["expiredReferences"]?.elements ?? []).compactMap(\.text)
        let evidence = usEvidence(properties)
        var info = AlertInfo(
            language: "en-US", event: evidence.eventName, hazard: evidence.hazard, severity: nil, from: from,
            until: end.until, hasOpenEnd: end.isOpen, sent: sent,
            issuer: (properties["senderName"]?.text ?? "US National Weather Service").singleLine(limit: 80),
            areas: areas(feature["geometry"], properties["areaDesc"]?.text),
            texts: AlertTexts(
                headline: properties["headline"]?.text, description: properties["description"]?.text,
                instruction: properties["instruction"]?.text))
        info.add(severity(properties))
        return AlertMessage(
            identifier: identifier, sent: sent, kind: kind,
            references: references + CAPDocument.references(expired.joined(separator: " ")), infos: [info])
    }

    private static func usEvidence(_ properties: JSONValue) -> HazardEvidence {
        let codes = ["SAME", "NationalWeatherService"].flatMap { list in
            (properties["eventCode"]?[list]?.elements ?? []).compactMap { value in
                value.text.map { HazardEvidence.Code(list: list, value: $0) }
            }
        }
        return HazardEvidence(
            events: texts(properties, "event"), headlines: texts(properties, "headline"), codes: codes,
            categories: [properties["category"]?.text ?? "Met"],
            zones: (properties["geocode"]?["UGC"]?.elements ?? []).compactMap(\.text),
            areaNames: [properties["areaDesc"]?.text].compactMap { $0?.singleLine(limit: 1000) }, isUS: true)
    }

    /// Returns the texts of the named members of a JSON object, each on one line.
    private static func texts(_ object: JSONValue, _ names: String...) -> [String] {
        names.compactMap { object[$0]?.text?.singleLine(limit: AlertTexts.longestHeadline) }
    }

    private static func germanAlert(_ alert: JSONValue) -> AlertMessage? {
        guard let identifier = alert["alert_id"]?.text ?? alert["id"]?.finite.flatMap({ Int(exactly: $0) }).map(String.init),
            let from = ServiceTime.date(alert["onset"]) ?? ServiceTime.date(alert["effective"])
        else { return nil }
        let end = HazardEnd(
            from: from, ends: nil, expires: ServiceTime.date(alert["expires"]), sent: ServiceTime.date(alert["effective"]))
        let code = alert["event_code"]?.finite.flatMap { Int(exactly: $0) }.map {
            HazardEvidence.Code(list: "II", value: "\($0)")
        }
        let languages = ["en", "de"].filter { language in texts(alert, "event_\(language)").contains { !$0.isEmpty } }
        let infos = (languages.isEmpty ? ["de"] : languages).map { language -> AlertInfo in
            let evidence = HazardEvidence(
                events: texts(alert, "event_\(language)"), headlines: texts(alert, "headline_\(language)"),
                codes: [code].compactMap { $0 },
                categories: [alert["category"]?.text ?? "Met"])
            var info = AlertInfo(
                language: language, event: evidence.eventName, hazard: evidence.hazard, severity: nil, from: from,
                until: end.until, hasOpenEnd: end.isOpen, sent: ServiceTime.date(alert["effective"]),
                issuer: "Deutscher Wetterdienst", areas: [],
                texts: AlertTexts(
                    headline: alert["headline_\(language)"]?.text, description: alert["description_\(language)"]?.text,
                    instruction: alert["instruction_\(language)"]?.text))
            info.add(severity(alert))
            return info
        }
        return AlertMessage(identifier: identifier, sent: ServiceTime.date(alert["effective"]) ?? from, infos: infos)
    }

    /// Returns the outer rings of a GeoJSON geometry. Holes are ignored, because warnings are not drawn with holes around towns.
    private static func areas(_ geometry: JSONValue?, _ name: String?) -> [AlertArea] {
        let coordinates = geometry?["coordinates"]?.elements ?? []
        let polygons: [JSONValue] =
            switch geometry?["type"]?.text {
            case "Polygon": coordinates.prefix(1).map { $0 }
            case "MultiPolygon": coordinates.compactMap { $0.elements?.first }
            default: []
            }
        let rings = polygons.compactMap { ring -> [Coordinates]? in
            let corners = (ring.elements ?? []).compactMap { corner -> Coordinates? in
                // In GeoJSON the longitude is first.
                guard let pair = corner.elements, pair.count >= 2, let longitude = pair[0].finite, let latitude = pair[1].finite
                else {
                    return nil
                }
                return Coordinates(latitude: latitude, foldingLongitude: longitude)
            }
            return corners.count == ring.elements?.count && corners.count >= 3 ? corners : nil
        }
        // A warning without a drawn area applies to the place that was requested.
        let isComplete = rings.count == polygons.count
        return [
            AlertArea(
                name: (name ?? "").singleLine(limit: 120), polygons: isComplete ? rings.filter(AlertArea.hasArea) : [])
        ]
    }
}
