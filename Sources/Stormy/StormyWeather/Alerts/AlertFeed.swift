import Foundation
import TransferMachines

/// Reads Atom and RSS feeds of CAP documents. An entry links to a document, or contains the document.
package enum AlertFeed {
    /// The content of an entry.
    package enum Entry: Sendable, Equatable, Codable {
        /// The address of a document, and the time at which the document was written according to the feed. A document is
        /// downloaded again only if this time differs.
        case link(String, updated: String?)
        case message(AlertMessage)
    }

    /// The maximum number of documents of one feed that are used. If a feed has more documents, the most severe documents are
    /// used. If several documents have the same severity, the newest documents are used. The feed contains the severity and the
    /// time of each document.
    package static let mostLinks = 1000

    /// The entries of a feed, and the number of documents that are not used.
    package struct Content: Sendable, Equatable {
        package var entries: [Entry]
        package var leftOut = 0
        /// The number of entries without a usable link, plus the number of warnings in entries that cannot be read.
        package var unusable = 0
        /// `true` if the feed has further pages (RFC 5005), which are not read.
        package var hasMorePages = false
        /// The element `updated` of the feed itself (see ``DataTime``). `nil` if the feed does not have this element.
        package var dataTime: Date?
    }

    /// - Parameter base: the feed's address, to which relative links are added.
    /// - Throws: ``WeatherError/notCAP``.
    package static func parse(_ data: Data, base: String) throws(WeatherError) -> Content {
        guard data.count <= ServiceResponse.maximumBytes else { throw .tooLarge(bytes: data.count) }
        let root = try WeatherError.xml(data)
        switch root.name {
        // The response is a single document instead of a feed.
        case "alert": return Content(entries: try CAPDocument.message(root).map { [.message($0)] } ?? [])
        // The response is a list of documents, or an envelope of EDXL-DE with documents.
        case "alerts", "EDXLDistribution":
            let read = messages(in: alerts(below: root))
            return Content(entries: read.entries, unusable: read.unread)
        case "feed":
            var content = foremost(root.all("entry"), base)
            content.hasMorePages = root.all("link").contains { $0.attributes["rel"] == "next" }
            content.dataTime = root["updated"].flatMap { date($0.text.trimmingCharacters(in: .whitespacesAndNewlines)) }
            return content
        case "rss", "RDF": return foremost((root["channel"]?.all("item") ?? []) + root.all("item"), base)
        default: throw .notCAP
        }
    }

    /// Returns all messages in the feed, and the most severe documents, the newest first. A document without a readable date
    /// counts as newest, and a document without a severity counts as severe.
    private static func foremost(_ elements: [ResponseXML], _ base: String) -> Content {
        var (messages, links, unusable): ([Entry], [(entry: Entry, rank: Int, date: Date)], Int) = ([], [], 0)
        for element in elements {
            let severity = CAPSeverity(capName: element["severity"]?.text) ?? .severe
            let read = entries(of: element, base)
            unusable += read.unusable
            for entry in read.entries {
                switch entry {
                case .message: messages.append(entry)
                case .link(_, let updated): links.append((entry, severity.rank, updated.flatMap(date) ?? .distantFuture))
                }
            }
        }
        let kept = links.enumerated().sorted {
            ($1.element.rank, $1.element.date, $0.offset) < ($0.element.rank, $0.element.date, $1.offset)
        }.prefix(mostLinks)
        return Content(
            entries: messages + kept.map(\.element.entry), leftOut: links.count - kept.count, unusable: unusable)
    }

    /// Parses a date of Atom or of RSS.
    static func date(_ text: String) -> Date? { ServiceTime.date(text) ?? HTTPDate.parse(text) }

    private static func entries(of element: ResponseXML, _ base: String) -> (entries: [Entry], unusable: Int) {
        let alerts = element.children.flatMap(alerts(of:))
        var (entries, unread) = messages(in: alerts)
        if alerts.isEmpty { unread = 1 }
        // The linked document may be readable even if the warning in the entry is not readable.
        let addresses = unread > 0 ? links(element).compactMap { resolved($0, base) } : []
        guard !addresses.isEmpty else { return (entries, unread) }
        let updated = (element["updated"] ?? element["pubDate"])?.text.singleLine(limit: 60)
        return (entries + addresses.map { .link($0, updated: updated) }, 0)
    }

    /// The elements whose text may be a document, in CDATA or with escaped characters.
    private static let texts: Set<String> = ["content", "encoded", "description", "summary"]

    /// Returns the elements `alert` in a part of an entry of the feed.
    private static func alerts(of part: ResponseXML) -> [ResponseXML] {
        if part.name == "alert" { return [part] }
        guard texts.contains(part.name) else { return [] }
        let elements = part.children.filter { $0.name == "alert" }
        return elements.isEmpty ? [document(in: part.text)].compactMap { $0 } : elements
    }

    private static func document(in text: String) -> ResponseXML? {
        guard text.hasPrefix("<"), text.contains("alert") else { return nil }
        // The XML declaration is skipped, because it contains the encoding of the original document, and not the encoding of this
        // text.
        let start = text.hasPrefix("<?xml ") ? text.range(of: "?>")?.upperBound : nil
        let root = ResponseXML.read(Data(text[(start ?? text.startIndex)...].utf8))
        return root?.name == "alert" ? root : nil
    }

    private static func alerts(below element: ResponseXML) -> [ResponseXML] {
        element.name == "alert" ? [element] : element.children.flatMap(alerts(below:))
    }

    private static func messages(in alerts: [ResponseXML]) -> (entries: [Entry], unread: Int) {
        var (entries, unread): ([Entry], Int) = ([], 0)
        for alert in alerts {
            do throws(WeatherError) {
                if let message = try CAPDocument.message(alert) { entries.append(.message(message)) }
            } catch {
                unread += 1
            }
        }
        return (entries, unread)
    }

    /// Returns the addresses of the warning documents to which an element of the feed links. In Atom, each link has a type, and
    /// an entry can link to several documents. In RSS, an element has one link, often to a page for readers, and each enclosure
    /// has a type.
    static func links(_ element: ResponseXML) -> [String] {
        let links = element.all("link")
        let enclosures = element.all("enclosure").filter { $0.attributes["url"]?.isEmpty == false }
        func all(_ type: String, of elements: [ResponseXML]) -> [ResponseXML] {
            elements.filter { $0.attributes["type"]?.lowercased().contains(type) == true }
        }
        let documents = [all("cap+xml", of: links), all("cap+xml", of: enclosures), all("/xml", of: enclosures)].first {
            !$0.isEmpty
        }
        let own =
            documents ?? [links.first { ["alternate", nil].contains($0.attributes["rel"]) } ?? links.first].compactMap { $0 }
        let addresses = own.compactMap { $0.attributes["href"] ?? $0.attributes["url"] ?? $0.text }.filter { !$0.isEmpty }
        return addresses.isEmpty ? [element["guid"]?.text ?? element["id"]?.text].compactMap { $0 } : addresses
    }

    static func resolved(_ link: String, _ base: String) -> String? {
        guard let url = URL(string: link, relativeTo: URL(string: base))?.absoluteURL,
            ["http", "https"].contains(url.scheme ?? ""),
            url.host?.isEmpty == false
        else { return nil }
        return url.absoluteString
    }
}
