import Foundation

/// A minimal PROPFIND response that clients accept. The response contains sizes, tags and kinds of a resource and of its direct
/// children.
struct DavListing {
    private let store: DavStore
    private let path: String
    private let place: String

    init(_ store: DavStore, path: String, place: String) {
        self.store = store
        self.path = path
        self.place = place
    }

    func answer(_ depth: String?) -> ResponseScript {
        var xml = #"<?xml version="1.0" encoding="utf-8"?><D:multistatus xmlns:D="DAV:">"#
        xml += entry(href: path, place: place)
        if depth != "0", store.tree.kind(place) == .collection {
            let base = path.hasSuffix("/") ? path : path + "/"
            for name in store.tree.children(place) {
                let encoded = name.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? name
                xml += entry(href: base + encoded, place: "\(place)/\(name)")
            }
        }
        xml += "</D:multistatus>"
        return .status(207, headers: ["Content-Type": "application/xml; charset=utf-8"], body: .text(xml))
    }

    private func entry(href: String, place: String) -> String {
        let isCollection = store.tree.kind(place) == .collection
        let facts = store.tree.facts(place)
        var properties = isCollection ? "<D:resourcetype><D:collection/></D:resourcetype>" : "<D:resourcetype/>"
        if !isCollection, let facts {
            properties += "<D:getcontentlength>\(facts.size)</D:getcontentlength><D:getetag>\(facts.etag)</D:getetag>"
        }
        // The path is already percent-encoded, so only the ampersand needs escaping.
        let link = href.replacingOccurrences(of: "&", with: "&amp;")
        return "<D:response><D:href>\(link)</D:href><D:propstat><D:prop>\(properties)</D:prop>"
            + "<D:status>HTTP/1.1 200 OK</D:status></D:propstat></D:response>"
    }
}
