import Foundation

/// The place for a file that a server made and names in `Location`.
enum UploadPlace {
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
