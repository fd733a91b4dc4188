import Foundation
import FoundationNetworking
import TransferMachines

/// The cookies of an ordinary session. This type adds cookies of the store to requests, and stores the cookies of responses.
struct SessionCookies: Sendable {
    /// The maximum number of cookies that one response can set. A limit is necessary, because Foundation writes the complete file
    /// for each cookie.
    static let mostPerAnswer = 50
    /// The maximum number of cookies that the store keeps for one domain, and for all domains together. Source of the numbers:
    /// RFC 6265, 6.1, which asks for at least 50 cookies for each domain and 3000 cookies in total.
    static let (mostPerDomain, mostInAll) = (180, 3000)
    /// The maximum number of bytes of a cookie's name and value together, and of all its attributes together. Source of the
    /// numbers: RFC 6265bis, 5.6.
    private static let (longestPair, longestAttributes) = (4096, 1024)
    /// The maximum number of bytes of the `Cookie` header. Common servers refuse a longer header.
    static let longestHeader = 8192

    private let storage: HTTPCookieStorage
    private let sendsThem: Bool
    private let policy: HTTPCookie.AcceptPolicy

    /// Returns `nil` if the configuration has no cookie storage.
    init?(_ configuration: URLSessionConfiguration) {
        guard let storage = configuration.httpCookieStorage else { return nil }
        (self.storage, sendsThem) = (storage, configuration.httpShouldSetCookies)
        policy = configuration.httpCookieAcceptPolicy
    }

    /// Returns the headers with the store's cookies for this address. Cookies that the app set in the request are not changed.
    func added(to headers: [HeaderField], for url: URL, of request: URLRequest, now: Date) -> [HeaderField] {
        guard sendsThem, request.httpShouldHandleCookies else { return headers }
        // The cookies are filtered again, because Foundation's store compares only the host.
        let cookies = (storage.cookies(for: url) ?? []).filter { Self.belongs($0, to: url, now: now) }
            .sorted { ($1.path.count, $0.name) < ($0.path.count, $1.name) }
        var headers = headers
        let own = headers.firstIndex { $0.name.lowercased() == "cookie" }
        let ownNames = Set(
            (own.map { headers[$0].value } ?? "").split(separator: ";").map { pair in
                pair.prefix { $0 != "=" }.trimmingCharacters(in: .whitespaces)
            })
        var room = Self.longestHeader - (own.map { headers[$0].value.utf8.count } ?? 0)
        let added = cookies.filter { !ownNames.contains($0.name) }.map { "\($0.name)=\($0.value)" }.filter { pair in
            let length = pair.utf8.count + 2
            guard length <= room else { return false }
            room -= length
            return true
        }
        guard !added.isEmpty else { return headers }
        if let own {
            headers[own].value = ([headers[own].value] + added).joined(separator: "; ")
        } else {
            headers.append(HeaderField("Cookie", added.joined(separator: "; ")))
        }
        return headers
    }

    /// Stores the cookies that a response, for example a redirect, sets.
    func store(_ head: ResponseHead, from url: URL, of request: URLRequest, now: Date) {
        guard request.httpShouldHandleCookies, policy != .never else { return }
        if policy == .onlyFromMainDocumentDomain, let main = request.mainDocumentURL?.host?.lowercased(),
            let host = url.host?.lowercased(), main != host, !main.hasSuffix("." + host)
        {
            return
        }
        guard Self.areSet(by: head) else { return }
        let held = storage.cookies ?? []
        let cookies = Self.cookies(of: head, from: url, beside: held, now: now)
        guard !cookies.isEmpty else { return }
        for old in Self.displaced(by: cookies, of: held, now: now) { storage.deleteCookie(old) }
        storage.setCookies(cookies, for: url, mainDocumentURL: request.mainDocumentURL)
        if storage === HTTPCookieStorage.shared { SharedStores.hideCookies() }
    }

    static func areSet(by head: ResponseHead) -> Bool { head.headers.contains { $0.name.lowercased() == "set-cookie" } }

    /// Returns the cookies that a response is allowed to set. If several cookies have equal domain, path and name, only the last
    /// cookie is returned.
    ///
    /// - Parameter held: the cookies in the store.
    private static func cookies(of head: ResponseHead, from url: URL, beside held: [HTTPCookie], now: Date) -> [HTTPCookie] {
        let secure = Set(held.lazy.filter(\.isSecure).map { [$0.name, domain(of: $0)] })
        var (cookies, places): ([HTTPCookie], [[String]: Int]) = ([], [:])
        // Each `Set-Cookie` header is parsed separately. If all headers were joined with commas, a date would be split at the
        // comma in the date.
        for field in head.headers where field.name.lowercased() == "set-cookie" && isShort(field.value) {
            let header = placed(dated(field.value, now), url)
            for cookie in HTTPCookie.cookies(withResponseHeaderFields: ["Set-Cookie": header], for: url)
            where maySet(cookie, url) && (isSecure(url) || !secure.contains([cookie.name, domain(of: cookie)])) {
                if let place = places[key(cookie)] {
                    cookies[place] = cookie
                } else if cookies.count < mostPerAnswer {
                    places[key(cookie)] = cookies.count
                    cookies.append(cookie)
                } else {
                    return cookies
                }
            }
        }
        return cookies
    }

    private static func isShort(_ header: String) -> Bool {
        let pair = header.utf8.prefix { $0 != UInt8(ascii: ";") }.count
        return pair <= longestPair && header.utf8.count - pair <= longestAttributes
    }

    /// Returns the cookies to remove when new cookies are stored. If a domain, or the complete store, has too many cookies, the
    /// oldest cookies are removed. Source of the rule: RFC 6265, 5.3.
    static func displaced(by new: [HTTPCookie], of held: [HTTPCookie], now: Date) -> [HTTPCookie] {
        let replaced = Set(new.map(key))
        var count = new.count
        var counts: [String: Int] = [:]
        for cookie in new { counts[domain(of: cookie), default: 0] += 1 }
        // Foundation removes expired cookies itself when the next cookie is stored.
        let lasting = held.filter { cookie in !replaced.contains(key(cookie)) && cookie.expiresDate.map { $0 > now } != false }
        let displaced = lasting.map { (created($0), $0) }.sorted { $0.0 > $1.0 }.map(\.1).filter { cookie in
            let ofDomain = counts[domain(of: cookie), default: 0]
            guard count < mostInAll, ofDomain < mostPerDomain else { return true }
            (count, counts[domain(of: cookie)]) = (count + 1, ofDomain + 1)
            return false
        }
        // The store writes a file for each removed cookie. For this reason, one response removes only a limited number of
        // cookies, and later responses remove the rest.
        return displaced.suffix(2 * mostPerAnswer)
    }

    /// Returns the properties by which Foundation's store distinguishes cookies.
    private static func key(_ cookie: HTTPCookie) -> [String] { [cookie.domain, cookie.path, cookie.name] }

    private static func domain(of cookie: HTTPCookie) -> String { cookie.domain.drop { $0 == "." }.lowercased() }

    /// The time in seconds at which the cookie was created or was read from the disk.
    private static func created(_ cookie: HTTPCookie) -> Double {
        cookie.properties?[HTTPCookiePropertyKey(rawValue: "Created")] as? Double ?? 0
    }

    private static func isSecure(_ url: URL) -> Bool { url.scheme?.lowercased() == "https" }

    /// Replaces a cookie's `Max-Age` by an `Expires` date, because Foundation supports only `Expires`. Source of the rule: RFC
    /// 6265, 5.3.3.
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
        // The age of a cookie is limited to 100 years. An expired cookie gets a date in 1970.
        let end = age <= 0 ? Date(timeIntervalSince1970: 0) : now.addingTimeInterval(Double(min(age, 3_155_760_000)))
        return (kept + [" Expires=\(HTTPDate.text(end))"]).joined(separator: ";")
    }

    /// Returns whether a cookie is sent to the address. Source of the rule: RFC 6265, 5.1.4 and 5.4.
    private static func belongs(_ cookie: HTTPCookie, to url: URL, now: Date) -> Bool {
        if let end = cookie.expiresDate, end <= now { return false }
        if cookie.isSecure, url.scheme?.lowercased() != "https" { return false }
        let path = url.path.isEmpty ? "/" : url.path
        return path == cookie.path || path.hasPrefix(cookie.path.hasSuffix("/") ? cookie.path : cookie.path + "/")
    }

    /// If a cookie has no absolute path, sets the cookie's path to the folder of the request's address. Source of the rule: RFC
    /// 6265, 5.1.4 and 5.2.4.
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

    /// Returns whether a response is allowed to set the cookie. A response cannot set a cookie for all hosts of a top-level
    /// domain, or for another host. A response over http cannot set a secure cookie. Source of the rule: RFC 6265bis, 5.7.
    ///
    /// The list of public suffixes (for example `github.io`) is not used. For this reason, a site below such a suffix can set
    /// cookies for other sites below the same suffix.
    private static func maySet(_ cookie: HTTPCookie, _ url: URL) -> Bool {
        let host = url.host?.lowercased() ?? ""
        let domain = domain(of: cookie)
        let isAddress = host.contains(":") || host.allSatisfy { $0.isNumber || $0 == "." }
        guard domain == host || domain.contains(".") && !isAddress else { return false }
        if cookie.isSecure && !isSecure(url) { return false }
        let name = cookie.name.lowercased()
        if name.hasPrefix("__secure-") || name.hasPrefix("__host-"), !cookie.isSecure { return false }
        return !name.hasPrefix("__host-") || cookie.path == "/" && !cookie.domain.hasPrefix(".")
    }
}
