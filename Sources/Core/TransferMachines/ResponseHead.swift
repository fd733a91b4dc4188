import Foundation

/// The status and the headers of the final response. Interim responses (1xx) are ignored, except 104, which is reported as a
/// separate event.
package struct ResponseHead: Sendable, Equatable, Codable {
    package var status: Int
    package var headers: [HeaderField]
    /// The URL that sent the response, after redirects.
    package var url: String

    package init(status: Int, headers: [HeaderField], url: String) {
        self.status = status
        self.headers = headers
        self.url = url
    }

    /// Returns the first value of a header, without surrounding blanks. The case of the name is ignored.
    package subscript(name: String) -> String? {
        let wanted = name.lowercased()
        guard let field = headers.first(where: { $0.name.lowercased() == wanted }) else { return nil }
        return String(field.value.drop(while: { $0 == " " || $0 == "\t" }))
    }
}

// The properties of the body of the response, as the headers describe the body.
extension ResponseHead {
    /// The content coding of the body, in lower case. `nil` if the body is not coded.
    package var contentCoding: String? {
        guard let coding = self["Content-Encoding"]?.lowercased(), !coding.isEmpty, coding != "identity" else { return nil }
        return coding
    }

    /// The value of `Content-Length`. `nil` if the value is not a single number. Repeated equal values are allowed (RFC 9110
    /// §8.6).
    package var contentLength: Int64? {
        let values = Set(
            headers.filter { $0.name.lowercased() == "content-length" }.map {
                $0.value.filter { $0 != " " && $0 != "\t" }
            })
        guard values.count == 1, let text = values.first, text.utf8.allSatisfy({ (48...57).contains($0) }) else {
            return nil
        }
        return Int64(text)
    }

    /// The length of the body. `nil` if the body is chunked or ends with the connection.
    var announcedLength: Int64? {
        transferCoding == nil ? contentLength : nil
    }

    /// The last transfer coding of the message, in lower case. This coding determines the end of the body. `nil` if the message
    /// has no transfer coding, or if the coding is "identity". RFC 7230 removed "identity", but old servers send it.
    package var transferCoding: String? {
        let last = headers.last { $0.name.lowercased() == "transfer-encoding" }?.value.split(separator: ",").last
        let coding = last.map { $0.lowercased().filter { $0 != " " && $0 != "\t" } } ?? ""
        return coding.isEmpty || coding == "identity" ? nil : coding
    }

    /// `true` if the length is invalid: two different lengths, too many digits, or not a number. The end of the body is then
    /// unknown (RFC 9112 §6.3: unrecoverable).
    var hasBrokenLength: Bool {
        transferCoding == nil && self["Content-Length"] != nil && contentLength == nil
    }

    /// `true` if the body ends with the connection, as HTTP/1 permits.
    package var hasNoLength: Bool {
        guard status != 204, status != 304 else { return false }
        return transferCoding.map { $0 != "chunked" } ?? (self["Content-Length"] == nil)
    }

    /// The response headers for the complete object, if this is the response to a GET for a part of the object.
    var ofCompleteObject: ResponseHead {
        let total: Int64?
        switch self["Content-Range"].flatMap({ ContentRange($0) }) {
        case .part(_, _, let size)? where status == 206: total = size
        case .unsatisfied(let size)? where status == 416: total = size
        case .part, .unsatisfied, nil: return self
        }
        var head = self
        head.status = 200
        head.headers.removeAll { $0.name.lowercased() == "content-length" }
        if let total { head.headers.append(HeaderField("Content-Length", "\(total)")) }
        return head
    }
}

// Properties for refusals that may be temporary.
extension ResponseHead {
    /// `true` if no upload protocol defines a meaning for the refusal. Such a refusal may concern only a single attempt.
    /// Nextcloud responds with 400 if its storage failed. Proxies respond with 400, 424 or 499 while a server restarts.
    ///
    /// A temporary redirect (RFC 9110 §15.4) leads to a login page or a maintenance page. A page with a status of success has the
    /// same causes, because no upload protocol sends pages.
    var hasNoMeaningForUploads: Bool {
        [302, 303, 304, 307].contains(status) || (200..<300).contains(status) && isPage
            || (400..<500).contains(status) && !Self.refusalsWithMeaning.contains(status)
    }

    private static let refusalsWithMeaning: Set<Int> = [401, 402, 403, 404, 405, 407, 409, 410, 411, 412, 413, 414, 415, 431]
}

// Properties for redirects and captive portals.
extension ResponseHead {
    /// The requested address and the address in `Location`.
    private var redirection: (from: URL, to: URL)? {
        guard let place = self["Location"], let base = URL(string: url), let target = URL(string: place, relativeTo: base) else {
            return nil
        }
        return (base, target)
    }

    /// `true` if the response is a redirect over http to another host. Any system between this computer and the server may have
    /// sent it, because only https proves the identity of the server.
    var mayLeadToAPortal: Bool {
        guard let (base, target) = redirection, base.scheme?.lowercased() == "http", let host = target.host else { return false }
        if host.lowercased() != base.host?.lowercased() { return true }
        // A redirect from http to https at the same host is normal, so it is not suspicious.
        return target.scheme?.lowercased() == "http" && (target.port ?? 80) != (base.port ?? 80)
    }

    /// `true` if the response is a redirect over http to another file name at the same host. A captive portal can send such a
    /// redirect in the name of the host. If a server moves a file, the name of the file does not change.
    var leadsToAnotherName: Bool {
        guard let (base, target) = redirection, base.scheme?.lowercased() == "http",
            target.host?.lowercased() == base.host?.lowercased()
        else { return false }
        return target.scheme?.lowercased() == "http" && target.lastPathComponent != base.lastPathComponent
    }

    var isRedirect: Bool { (300..<400).contains(status) && status != 304 }

    /// `true` if the response is a redirect over http.
    var mayLeadToALogIn: Bool { isRedirect && isUnencrypted }

    /// `true` if the response is a redirect to a login page. A login page is at another host or port, its path contains a word
    /// for a login, or its query contains the requested path. A gateway for single sign-on sends such redirects, even over https.
    var leadsToALogInPage: Bool {
        guard isRedirect, let (base, target) = redirection else { return false }
        if target.host?.lowercased() != base.host?.lowercased() { return true }
        let isSamePort = leadsToEncryption ? target.port ?? 443 == 443 : target.port == base.port
        if !isSamePort { return true }
        let words = target.path.lowercased().filter { $0.isLetter || $0 == "/" || $0 == "." }.split { $0 == "/" || $0 == "." }
        if words.contains(where: { word in Self.logInWords.contains { word.hasPrefix($0) } }) { return true }
        let query = target.query(percentEncoded: false) ?? ""
        return base.path.count > 1 && query.contains(base.path)
    }

    private static let logInWords = ["login", "logon", "signin", "signon", "auth", "oauth", "sso", "oidc", "saml", "wplogin"]

    /// `true` if the response is a redirect from http to https at the same host. Many servers send such a redirect to every
    /// client.
    var leadsToEncryption: Bool {
        guard isUnencrypted, let (base, target) = redirection else { return false }
        return target.scheme?.lowercased() == "https" && target.host?.lowercased() == base.host?.lowercased()
    }

    /// `true` if the response arrived over http. A system other than the server may then have sent it.
    var isUnencrypted: Bool { URL(string: url)?.scheme?.lowercased() == "http" }

    /// `true` if the response is a web page.
    var isPage: Bool {
        let type = self["Content-Type"]?.lowercased() ?? ""
        return type.hasPrefix("text/html") || type.hasPrefix("application/xhtml")
    }

    /// `true` if the response is a web page or a redirect to another host, and a captive portal may have sent it.
    var mayBeOfAPortal: Bool {
        mayLeadToAPortal || isPage && (200..<300).contains(status) && isUnencrypted
    }

    /// `true` if the response is a success over http. Any system between this computer and the server may have sent it.
    var isUnprovenSuccess: Bool { isUnencrypted && (200..<300).contains(status) }

    /// `true` if the response comes from a captive portal. Use this property only for the response to a request for a file name
    /// that does not exist on any server.
    var isOfAPortalForEveryName: Bool { mayLeadToAPortal || isUnprovenSuccess || status == 511 }

    /// Returns whether the response is a web page in place of another kind of file. A captive portal responds with 200 for every
    /// name. Without this check, the upload would therefore treat all names as taken.
    func isPage(inPlaceOf plan: UploadPlan) -> Bool {
        let name = plan.order.fileName.lowercased()
        return isPage && !name.hasSuffix(".html") && !name.hasSuffix(".htm")
    }
}
