import Foundation

/// The place for a file that a server made and names in `Location`; and how many it has made and lost.
struct UploadPlace {
    /// Places made for one file before it is given up: a server that loses each at once would be asked for ever.
    static let maximumCreations = 5

    private(set) var address: String?
    private(set) var creations: Int

    init(_ memory: UploadMemory?) {
        address = memory?.place
        creations = memory?.creations ?? 0
    }

    mutating func made(at address: String) {
        self.address = address
        creations += 1
    }

    /// The same place under another address.
    mutating func moved(to address: String) { self.address = address }

    /// It is not there any more, or another's.
    mutating func lose(_ head: ResponseHead, _ pauses: Pauses, _ why: String) -> UploadOutcome {
        guard creations < Self.maximumCreations else { return .fail(head, -1011, "\(why) It did so \(creations) times.") }
        address = nil
        return pauses.retry(head, why)
    }

    /// None was made after all.
    mutating func forget() { address = nil }

    /// Absolute or relative. A server behind a proxy that ends TLS names itself with http: the address we came by counts.
    static func address(of location: String?, madeAt address: String) -> String? {
        guard let location, !location.isEmpty, let home = URL(string: address),
            let target = URL(string: location, relativeTo: home)?.absoluteURL, let host = target.host, !host.isEmpty
        else { return nil }
        switch (home.scheme?.lowercased(), target.scheme?.lowercased()) {
        case (_, "https"), ("http", "http"): return target.absoluteString
        case ("https", "http"):
            guard host.lowercased() == home.host?.lowercased() else { return nil }
            guard var parts = URLComponents(url: target, resolvingAgainstBaseURL: true) else { return nil }
            (parts.scheme, parts.port) = (home.scheme, home.port)
            return parts.string
        default: return nil
        }
    }
}
