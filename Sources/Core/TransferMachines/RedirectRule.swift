import Foundation

/// Computes the request that follows a redirect (RFC 9110 §15.4). Callers use this rule if the app decides about each redirect.
package enum RedirectRule {
    /// The maximum number of redirects of one request.
    package static let limit = 20

    package enum Refusal: Error, Equatable, Sendable {
        /// The scheme is not http or https, or the redirect leads from an encrypted to an unencrypted scheme.
        case otherScheme
        case malformed
    }

    /// Returns the next request, or `nil` if the response is not a redirect or has no target.
    /// - Parameter headers: The headers of the redirected request. Only headers without secrets (``isHarmless(_:)``) are sent to
    ///   another host, port or scheme.
    package static func next(
        method: String, url: String, headers: [HeaderField], head: ResponseHead
    ) throws(Refusal) -> (method: String, url: String, headers: [HeaderField])? {
        guard [301, 302, 303, 307, 308].contains(head.status), let place = head["Location"], !place.isEmpty else { return nil }
        guard let base = URL(string: url), let target = URL(string: place, relativeTo: base)?.absoluteURL else {
            throw .malformed
        }
        let scheme = target.scheme?.lowercased()
        guard scheme == "https" || scheme == "http" && base.scheme?.lowercased() == "http" else { throw .otherScheme }
        guard target.host?.isEmpty == false else { throw .malformed }
        // The status 303 means that the response is available at another address. After a POST, 301 and 302 have the same effect
        // by convention.
        let becomesGet = head.status == 303 ? method != "HEAD" : [301, 302].contains(head.status) && method == "POST"
        var kept = headers
        if origin(of: base) != origin(of: target) { kept.removeAll { !isHarmless($0.name) } }
        if becomesGet {
            kept.removeAll { ["content-type", "content-length", "content-encoding"].contains($0.name.lowercased()) }
        }
        kept.removeAll { $0.name.lowercased() == "host" }
        return (becomesGet ? "GET" : method, target.absoluteString, kept)
    }

    /// Headers that describe the request and do not grant access. All other headers may be intended for a single server.
    private static let harmless: Set<String> = [
        "accept", "accept-charset", "accept-encoding", "accept-language", "cache-control", "content-encoding", "content-language",
        "content-length", "content-type", "date", "digest", "dnt", "expect", "if-match", "if-modified-since", "if-none-match",
        "if-range", "if-unmodified-since", "pragma", "prefer", "range", "te", "upgrade-insecure-requests", "user-agent",
        "want-content-digest", "want-digest", "want-repr-digest",
    ]

    /// Returns whether a header may be sent to another server, because it contains no secrets.
    package static func isHarmless(_ name: String) -> Bool { harmless.contains(name.lowercased()) }

    /// Returns the origin of a URL: the scheme, the host and the port (RFC 6454). A secret is valid for a single origin.
    package static func origin(of url: URL) -> String {
        let scheme = url.scheme?.lowercased() ?? ""
        return "\(scheme)://\(url.host?.lowercased() ?? ""):\(url.port ?? (scheme == "https" ? 443 : 80))"
    }
}

/// The authentication that a 401 response requires (RFC 9110 §11.6).
package struct AuthenticationDemand: Equatable, Sendable {
    package enum Scheme: Equatable, Sendable {
        case basic
        case digest
    }

    package var scheme: Scheme
    package var realm: String?

    /// Returns the most secure supported scheme that the server offers. Digest is preferred to Basic.
    package static func read(_ head: ResponseHead) -> AuthenticationDemand? {
        guard head.status == 401 else { return nil }
        var found: AuthenticationDemand?
        for field in head.headers where field.name.lowercased() == "www-authenticate" {
            let text = field.value.trimmingCharacters(in: .whitespaces)
            let scheme = text.prefix { $0 != " " }.lowercased()
            if scheme == "digest" { return AuthenticationDemand(scheme: .digest, realm: realm(text)) }
            if scheme == "basic" { found = AuthenticationDemand(scheme: .basic, realm: realm(text)) }
        }
        return found
    }

    private static func realm(_ text: String) -> String? {
        guard let start = text.range(of: "realm=\"", options: .caseInsensitive) else { return nil }
        return String(text[start.upperBound...].prefix { $0 != "\"" })
    }
}
