import Foundation
import FoundationNetworking
import TransferMachines

/// The cookies of an ordinary session: what a request carries of its store, and what an answer puts there.
struct SessionCookies {
    private let storage: HTTPCookieStorage
    private let sendsThem: Bool
    private let policy: HTTPCookie.AcceptPolicy

    /// `nil`: the configuration has no store.
    init?(_ configuration: URLSessionConfiguration) {
        guard let storage = configuration.httpCookieStorage else { return nil }
        (self.storage, sendsThem) = (storage, configuration.httpShouldSetCookies)
        policy = configuration.httpCookieAcceptPolicy
    }

    /// The headers with the store's cookies for this address. A cookie that the request has itself stays as it is.
    func added(to headers: [HeaderField], for url: URL, of request: URLRequest, now: Date) -> [HeaderField] {
        guard sendsThem, request.httpShouldHandleCookies else { return headers }
        // Foundation's store looks at the host alone.
        let cookies = (storage.cookies(for: url) ?? []).filter { Self.belongs($0, to: url, now: now) }
            .sorted { ($1.path.count, $0.name) < ($0.path.count, $1.name) }
        var headers = headers
        let own = headers.firstIndex { $0.name.lowercased() == "cookie" }
        let ownNames = Set(
            (own.map { headers[$0].value } ?? "").split(separator: ";").map { pair in
                pair.prefix { $0 != "=" }.trimmingCharacters(in: .whitespaces)
            })
        let added = cookies.filter { !ownNames.contains($0.name) }.map { "\($0.name)=\($0.value)" }
        guard !added.isEmpty else { return headers }
        if let own {
            headers[own].value = ([headers[own].value] + added).joined(separator: "; ")
        } else {
            headers.append(HeaderField("Cookie", added.joined(separator: "; ")))
        }
        return headers
    }

    /// Keeps what an answer sets, a redirect's too.
    func take(_ head: ResponseHead, from url: URL, of request: URLRequest, now: Date) {
        guard request.httpShouldHandleCookies, policy != .never else { return }
        if policy == .onlyFromMainDocumentDomain, let main = request.mainDocumentURL?.host?.lowercased(),
            let host = url.host?.lowercased(), main != host, !main.hasSuffix("." + host)
        {
            return
        }
        // One header at a time: joined by commas, a date in one is two.
        for field in head.headers where field.name.lowercased() == "set-cookie" {
            let header = Self.placed(Self.dated(field.value, now), url)
            let cookies = HTTPCookie.cookies(withResponseHeaderFields: ["Set-Cookie": header], for: url).filter {
                maySet($0, url)
            }
            storage.setCookies(cookies, for: url, mainDocumentURL: request.mainDocumentURL)
            if storage === HTTPCookieStorage.shared { SharedStores.hideCookies() }
        }
    }

    /// A cookie's age in place of its date, as the date of its end: Foundation knows no other. Source of the rule: RFC 6265, 5.3.3.
    static func dated(_ header: String, _ now: Date) -> String {
        let parts = header.split(separator: ";")
        func value(of name: String, _ part: Substring) -> String? {
            let pair = part.split(separator: "=", maxSplits: 1)
            guard pair.count == 2, pair[0].trimmingCharacters(in: .whitespaces).lowercased() == name else { return nil }
            return pair[1].trimmingCharacters(in: .whitespaces)
        }
        guard let age = parts.dropFirst().lazy.compactMap({ value(of: "max-age", $0) }).first.flatMap({ Int64($0) }) else {
            return header
        }
        let kept = parts.filter { value(of: "expires", $0) == nil && value(of: "max-age", $0) == nil }
        // A century is for ever; what is over began to be so long ago.
        let end = age <= 0 ? Date(timeIntervalSince1970: 0) : now.addingTimeInterval(Double(min(age, 3_155_760_000)))
        return (kept + [" Expires=\(HTTPDate.text(end))"]).joined(separator: ";")
    }

    /// Source of the rule: RFC 6265, 5.1.4 and 5.4.
    private static func belongs(_ cookie: HTTPCookie, to url: URL, now: Date) -> Bool {
        if let end = cookie.expiresDate, end <= now { return false }
        if cookie.isSecure, url.scheme?.lowercased() != "https" { return false }
        let path = url.path.isEmpty ? "/" : url.path
        return path == cookie.path || path.hasPrefix(cookie.path.hasSuffix("/") ? cookie.path : cookie.path + "/")
    }

    /// A cookie that names no path, or no whole one, is for the folder that it came from. Source of the rule: RFC 6265, 5.1.4 and 5.2.4.
    static func placed(_ header: String, _ url: URL) -> String {
        let parts = header.split(separator: ";", omittingEmptySubsequences: false)
        func isPath(_ part: Substring) -> Bool {
            part.split(separator: "=", maxSplits: 1).first?.trimmingCharacters(in: .whitespaces).lowercased() == "path"
        }
        let named = parts.dropFirst().last(where: isPath)?.split(separator: "=", maxSplits: 1)
        if let named, named.count == 2, named[1].trimmingCharacters(in: .whitespaces).hasPrefix("/") { return header }
        let path = url.path.hasPrefix("/") ? url.path : "/"
        let folder = path.lastIndex(of: "/").map { path[..<$0] } ?? ""
        return (parts.filter { !isPath($0) } + [" Path=\(folder.isEmpty ? "/" : folder)"]).joined(separator: ";")
    }

    /// Not for all hosts of a top domain, nor for other addresses; over a plain connection none that only a secure one may carry, and none in the
    /// place of such a one. Source of the rule: RFC 6265bis, 5.7.
    ///
    /// Which domains are public (`github.io`) nobody here knows: a page of one may set cookies for its neighbours.
    private func maySet(_ cookie: HTTPCookie, _ url: URL) -> Bool {
        let host = url.host?.lowercased() ?? ""
        let domain = cookie.domain.drop { $0 == "." }.lowercased()
        let isSecure = url.scheme?.lowercased() == "https"
        let isAddress = host.contains(":") || host.allSatisfy { $0.isNumber || $0 == "." }
        guard domain == host || domain.contains(".") && !isAddress else { return false }
        if cookie.isSecure && !isSecure { return false }
        let name = cookie.name.lowercased()
        if name.hasPrefix("__secure-") || name.hasPrefix("__host-"), !cookie.isSecure { return false }
        if name.hasPrefix("__host-"), cookie.path != "/" || cookie.domain.hasPrefix(".") { return false }
        guard !isSecure else { return true }
        return !(storage.cookies ?? []).contains { held in
            held.isSecure && held.name == cookie.name && held.domain.drop { $0 == "." }.lowercased() == domain
        }
    }
}
