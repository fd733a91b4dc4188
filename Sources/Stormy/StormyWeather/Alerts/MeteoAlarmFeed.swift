import Foundation
import TransferMachines

/// The Atom feed of one country at MeteoAlarm. The feed is an index of warnings. An entry is about one area of one warning in one
/// language, and contains a link to the warning's CAP document. The entries are compared with a place before a document is
/// downloaded.
///
/// Source of the format: MeteoAlarm's feeds of Belgium, Switzerland and the United Kingdom.
package struct MeteoAlarmFeed: Sendable, Equatable {
    /// The text about the source, which Stormy shows together with MeteoAlarm's data. Source: MeteoAlarm's terms.
    package static let attribution = "EUMETNET – MeteoAlarm; delays are possible"

    /// The maximum size of a feed in bytes. A large real feed has 9 MB.
    package static let maximumBytes = 16 * 1024 * 1024
    /// The maximum number of corners of all areas of one feed. If a feed has more corners, the areas of the remaining entries are
    /// not used.
    private static let mostCorners = 1_000_000

    private static let origin = "https://feeds.meteoalarm.org"

    /// Returns the request for a country's feed.
    ///
    /// The request accepts several media types, because the server refuses requests that accept only Atom (status 406).
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
        /// The address of the document. `nil` if the document's entries have no usable address.
        var address: String?
        /// The time when the document was written, as text and as an instant. The time is the time of the newest entry of the
        /// document.
        var updated: String?
        var date: Date
        var areas: [AlertArea] = []
        /// `true` if an entry has neither an area nor a code, so that only the document can be compared with a place.
        var isVague = false

        /// Adds the area of an entry.
        mutating func add(_ entry: ResponseXML, corners: inout Int) {
            let area = CAPDocument.area(entry, corners: &corners)
            if entry["geocode"] == nil, !area.isDrawn || area.hasUnreadableShape { isVague = true }
            if area.isDrawn || entry["geocode"] != nil, !areas.contains(area) { areas.append(area) }
        }
    }

    /// The time at which the feed was written. `nil` if the feed does not contain this time.
    package let updated: Date?
    private let documents: [Document]

    /// - Parameters:
    ///   - status: the HTTP status.
    ///   - baseURL: the address in the request, which replaces MeteoAlarm's host in links.
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
        /// The documents that may contain a warning for the place, the newest first, without duplicates. Documents of other
        /// places are at the end of the array if their entries also have unknown areas. A document with unknown areas may have
        /// more areas than its entries.
        package var entries: [AlertFeed.Entry] = []
        /// The number of the place's documents that are not used: documents without a usable link, and the oldest documents
        /// beyond ``AlertFeed/mostLinks``.
        package var leftOut = 0
        /// The codes of areas without a polygon or a circle, if the region table does not contain these codes. The codes are
        /// sorted, without duplicates.
        package var unknownCodes: [RegionCode] = []
    }

    /// The number of warnings that the feed lists.
    package var count: Int { documents.count }

    /// Compares every warning with a place. The final decision needs the document, because codes are used only if the document
    /// has no polygons and circles.
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

    /// Returns `false` for tests, for exercises, and for warnings of level 1 (green). MeteoAlarm writes the level into the title,
    /// for example "Green Wind Warning issued for …".
    private static func isWarning(_ entry: ResponseXML) -> Bool {
        let title = entry["title"]?.text.lowercased() ?? ""
        return entry["status"]?.text.lowercased() ?? "actual" == "actual" && !title.hasPrefix("green ")
    }

    /// Parses a time. A time without an offset counts as UTC, because the times only order documents.
    private static func date(_ text: String) -> Date? { ServiceTime.date(text, utcOffset: 0) ?? AlertFeed.date(text) }

    /// Returns the address of an entry's document. `nil` if the address is neither on MeteoAlarm's host nor on the host that
    /// replaces it.
    private static func address(_ entry: ResponseXML, _ baseURL: String?) -> String? {
        guard let base = try? ServiceAddress(origin, replacement: baseURL).url(""),
            let link = AlertFeed.links(entry).first.flatMap({ AlertFeed.resolved($0, base + "/") }),
            let parts = URLComponents(string: link), let host = parts.host?.lowercased()
        else { return nil }
        let isOfficial = host == "meteoalarm.org" || host.hasSuffix(".meteoalarm.org")
        guard isOfficial else { return link.hasPrefix(base + "/") ? link : nil }
        guard base != origin else { return link }
        return base + parts.percentEncodedPath + (parts.percentEncodedQuery.map { "?" + $0 } ?? "")
    }
}
