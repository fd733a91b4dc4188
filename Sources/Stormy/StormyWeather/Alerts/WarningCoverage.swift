import Foundation

/// The sources of official warnings that Stormy requests for one place, and the sources that Stormy cannot request, with the
/// reasons.
package struct WarningCoverage: Sendable, Equatable {
    /// The reason why a service that covers the place cannot be requested.
    package enum Refusal: String, Sendable, Equatable {
        /// The service requires a contact in the User-Agent, and the configuration has no contact.
        case noContact
    }

    /// A service of the place's country, or a feed that the user configured.
    package struct Source: Sendable, Equatable {
        /// The name in the store: the raw value of an ``AlertService``, the ``MeteoAlarmCountry/key`` of a country, or the
        /// address of a feed.
        package var key: String
        /// The name for users, for example "US National Weather Service". The name does not contain the query of a feed's
        /// address, because the query may contain a key.
        package var name: String
        /// The region of the place, for services that issue warnings by region, for example "Haute Savoie (FR035)".
        package var region: String?
        /// The reason why the source cannot be requested. `nil` if the source is requested.
        package var refusal: Refusal?

        package init(_ service: AlertService, refusal: Refusal? = nil) {
            (key, name, self.refusal) = (service.rawValue, service.name, refusal)
        }

        /// Creates the source for the feed of one country of MeteoAlarm.
        package init(_ country: MeteoAlarmCountry, region: String) {
            (key, name, self.region) = (country.key, AlertService.meteoAlarm.name, region)
        }

        package init(feed: String) { (key, name) = (feed, WarningCoverage.name(ofFeed: feed)) }

        /// The service. `nil` if the source is a feed.
        package var service: AlertService? { AlertService(key: key) }
    }

    /// The reason why the place has no sources.
    package enum Gap: String, Sendable, Equatable {
        /// `alert_severity` is "off".
        case off
        /// No supported service covers the place, and no feed is configured.
        case noService
    }

    /// The sources: services first, then feeds.
    private(set) package var sources: [Source] = []
    /// The reason why ``sources`` is empty. `nil` if the array is not empty.
    private(set) package var gap: Gap?

    /// - Parameters:
    ///   - least: the lowest severity that counts.
    ///   - hasContact: `true` if the User-Agent contains a contact.
    ///   - failing: the services whose last request had no usable response.
    ///   - feeds: the addresses of `cap_feeds`.
    package init(
        at place: Coordinates, least: CAPSeverity, hasContact: Bool, failing: Set<AlertService> = [], feeds: [String] = []
    ) {
        guard least != .off else {
            gap = .off
            return
        }
        sources = AlertService.allCases.filter { $0 != .meteoAlarm && $0.covers(place) }.map { service in
            Source(service, refusal: service.needsContact && !hasContact ? .noContact : nil)
        }
        // MeteoAlarm has the same warnings as the country's own service, but the country's own service is faster.
        let hasService = sources.contains { $0.refusal == nil && !failing.contains($0.service ?? .meteoAlarm) }
        if !hasService {
            let regions = RegionCoverage(of: place)
            sources += regions.countries.map { Source($0, region: regions.text(of: $0)) }
        }
        sources += feeds.map(Source.init(feed:))
        if sources.isEmpty { gap = .noService }
    }

    /// Returns the name of a source in messages: the host and path of a feed's address.
    ///
    /// - Parameter address: ``Source/key``.
    package static func name(ofFeed address: String) -> String {
        if let country = MeteoAlarmCountry(key: address) { return "\(AlertService.meteoAlarm.name), \(country.name)" }
        guard let url = URLComponents(string: address), let host = url.host else { return address }
        return host + url.path
    }
}
