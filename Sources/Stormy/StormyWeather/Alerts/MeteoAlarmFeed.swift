import Foundation
import TransferMachines

/// The Atom feed of one country at MeteoAlarm: an index of warnings. An entry names one area of one warning in one language, and links to
/// the warning's CAP document. The entries are compared with a place before any document is fetched.
///
/// Source of the format: MeteoAlarm's feeds of Belgium, Switzerland and the United Kingdom.
package struct MeteoAlarmFeed: Sendable, Equatable {
    /// The names that are shown with the data. Source: MeteoAlarm's terms.
    package static let attribution = "EUMETNET – MeteoAlarm; delays are possible"

    /// The largest feed that is read, in bytes. A large one has 9 MB.
    package static let maximumBytes = 16 * 1024 * 1024
    /// Corners of all areas of one feed that are read. Entries after that count as entries without an area.
    private static let mostCorners = 1_000_000

    private static let origin = "https://feeds.meteoalarm.org"

    /// The request for a country's feed.
    ///
    /// The server refuses requests that accept Atom alone (status 406).
    ///
    /// - Parameter baseURL: replaces MeteoAlarm's host, for tests and mirrors.
    /// - Throws: ``WeatherRequestError/invalidBaseURL(_:)``
    package static func request(for country: MeteoAlarmCountry, baseURL: String? = nil) throws(WeatherRequestError)
        -> WeatherRequest
    {
        let address = ServiceAddress(origin, replacement: baseURL)
        return WeatherRequest(
            url: try address.url("/feeds/meteoalarm-legacy-atom-\(country.slug)"),
            headers: ["Accept": "application/atom+xml, application/xml;q=0.9, */*;q=0.1"])
    }

    /// A warning of the feed.
    private struct Document: Sendable, Equatable {
        /// `nil` if no address of its entry can be used.
        var address: String?
        /// When it was written, in the feed's words and as an instant. The newest of its entries counts.
        var updated: String?
        var date: Date
        var areas: [AlertArea] = []
        /// `true` if an entry names neither an area nor a code. Only the document can be compared with a place.
        var isVague = false

        /// Adds the area of an entry.
        mutating func add(_ entry: AnswerXML, corners: inout Int) {
            let area = CAPDocument.area(entry, corners: &corners)
            if entry["geocode"] == nil, !area.isDrawn || area.hasUnreadableShape { isVague = true }
            if area.isDrawn || entry["geocode"] != nil, !areas.contains(area) { areas.append(area) }
        }
    }

    /// When the feed was written; `nil` if the feed does not state it.
    package let updated: Date?
    private let documents: [Document]

    /// - Parameters:
    ///   - status: the HTTP status.
    ///   - baseURL: what the request had. Links to MeteoAlarm's host are changed to this address.
    /// - Throws: ``WeatherError``
    package init(reading data: Data, status: Int, baseURL: String? = nil) throws(WeatherError) {
        switch status {
        case 200...299: break
        case 304: throw .notModified
        case 429: throw .rateLimited(reason: "")
        case 404: throw .service(status: status, reason: "MeteoAlarm has no feed at this address")
        default: throw .service(status: status, reason: "")
        }
        guard data.count <= Self.maximumBytes else { throw .tooLarge(bytes: data.count, most: Self.maximumBytes) }
        let root = try WeatherError.xml(data)
        guard root.name == "feed" else { throw .notCAP }
        updated = root["updated"].flatMap { Self.date($0.text) }
        var (documents, unusable, left): ([String: Document], [Document], Int) = ([:], [], Self.mostCorners)
        for entry in root.all("entry") where Self.isWarning(entry) {
            guard let address = Self.address(entry, baseURL) else {
                unusable.append(Document(date: .distantPast))
                unusable[unusable.count - 1].add(entry, corners: &left)
                continue
            }
            var document = documents[address] ?? Document(address: address, date: .distantPast)
            let updated = (entry["updated"] ?? entry["sent"])?.text.singleLine(limit: 60)
            // A document without a readable date counts as newest.
            let date = updated.flatMap(Self.date) ?? .distantFuture
            if date > document.date { (document.updated, document.date) = (updated, date) }
            document.add(entry, corners: &left)
            documents[address] = document
        }
        self.documents =
            documents.sorted { ($1.value.date, $0.key) < ($0.value.date, $1.key) }.map(\.value) + unusable
    }

    /// The part of a feed that concerns one place.
    package struct Content: Sendable, Equatable {
        /// The documents that may warn of the place, the newest first, each once. Documents of other places whose entries also name areas that
        /// are not known come last: such a document may name other areas than its entries.
        package var entries: [AlertFeed.Entry] = []
        /// Documents of the place without a usable link, and those beyond ``AlertFeed/mostLinks``, the oldest.
        package var leftOut = 0
        /// Codes of areas that are not drawn, if the region table lacks them. Each once, in order.
        package var unknownCodes: [RegionCode] = []
    }

    /// The warnings that the feed lists.
    package var count: Int { documents.count }

    /// Compares every warning with a place. The documents decide in the end, because a drawn area counts before codes.
    package func content(at place: Coordinates) -> Content {
        let regions = Set(RegionCoverage(of: place).regions)
        var (content, unknown): (Content, Set<RegionCode>) = (Content(), [])
        var (meant, unplaced): ([Document], [Document]) = ([], [])
        for document in documents {
            unknown.formUnion(document.areas.flatMap(\.unknownCodes))
            let isMeant = document.areas.contains {
                $0.contains(place) || !$0.regions.isDisjoint(with: regions)
            }
            if isMeant || document.isVague {
                meant.append(document)
            } else if !document.areas.contains(where: \.isPlaced) || document.areas.contains(where: \.hasUnknownPart) {
                unplaced.append(document)
            }
        }
        let all = meant + unplaced
        content.entries = all.lazy.compactMap { document in
            document.address.map { .link($0, updated: document.updated) }
        }.prefix(AlertFeed.mostLinks).map { $0 }
        content.leftOut = all.count - content.entries.count
        content.unknownCodes = unknown.sorted { ($0.type, $0.value) < ($1.type, $1.value) }
        return content
    }

    // MARK: Entries

    /// `false` for tests and exercises, and for level 1. MeteoAlarm itself writes the titles: "Green Wind Warning issued for …".
    private static func isWarning(_ entry: AnswerXML) -> Bool {
        let title = entry["title"]?.text.lowercased() ?? ""
        return entry["status"]?.text.lowercased() ?? "actual" == "actual" && !title.hasPrefix("green ")
    }

    /// A time without an offset counts as UTC: the times order documents only.
    private static func date(_ text: String) -> Date? { AnswerTime.date(text, utcOffset: 0) ?? AlertFeed.date(text) }

    /// The address of an entry's document; `nil` if the address is not on MeteoAlarm's host or on its replacement.
    private static func address(_ entry: AnswerXML, _ baseURL: String?) -> String? {
        guard let base = try? ServiceAddress(origin, replacement: baseURL).url(""),
            let link = AlertFeed.link(entry).flatMap({ AlertFeed.resolved($0, base + "/") }),
            let parts = URLComponents(string: link), let host = parts.host?.lowercased()
        else { return nil }
        let isOfficial = host == "meteoalarm.org" || host.hasSuffix(".meteoalarm.org")
        guard isOfficial else { return link.hasPrefix(base + "/") ? link : nil }
        guard base != origin else { return link }
        return base + parts.percentEncodedPath + (parts.percentEncodedQuery.map { "?" + $0 } ?? "")
    }
}
