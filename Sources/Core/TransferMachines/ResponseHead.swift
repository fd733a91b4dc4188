import Foundation

/// The status and the headers of the final response. Of the interim responses (1xx) only 104 is reported, as an event.
package struct ResponseHead: Sendable, Equatable, Codable {
    package var status: Int
    package var headers: [HeaderField]
    /// The URL that answered, after redirects.
    package var url: String

    package init(status: Int, headers: [HeaderField], url: String) {
        self.status = status
        self.headers = headers
        self.url = url
    }

    /// The first value of a header, names compared without case; surrounding blanks removed.
    package subscript(name: String) -> String? {
        let wanted = name.lowercased()
        guard let field = headers.first(where: { $0.name.lowercased() == wanted }) else { return nil }
        return String(field.value.drop(while: { $0 == " " || $0 == "\t" }))
    }
}

// The body.
extension ResponseHead {
    /// The coding of the body, in lower case. `nil` if the body is not coded.
    package var contentCoding: String? {
        guard let coding = self["Content-Encoding"]?.lowercased(), !coding.isEmpty, coding != "identity" else { return nil }
        return coding
    }

    /// `Content-Length`, if it is one number (doubled equal values are legal, RFC 9110 §8.6).
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

    /// The length of the body. `nil` if the body is chunked, or ends with the connection.
    var announcedLength: Int64? {
        transferCoding == nil ? contentLength : nil
    }

    /// The last coding of the message, in lower case, which decides where the body ends. `nil` if there is none, or if it is "identity".
    /// RFC 7230 removed "identity", but old servers send it.
    package var transferCoding: String? {
        let last = headers.last { $0.name.lowercased() == "transfer-encoding" }?.value.split(separator: ",").last
        let coding = last.map { $0.lowercased().filter { $0 != " " && $0 != "\t" } } ?? ""
        return coding.isEmpty || coding == "identity" ? nil : coding
    }

    /// `true` if the length is invalid: two different lengths, too many digits, or not a number. The end of the body is then unknown
    /// (RFC 9112 §6.3: unrecoverable).
    var hasBrokenLength: Bool {
        transferCoding == nil && self["Content-Length"] != nil && contentLength == nil
    }

    /// `true` if the body ends with the connection, in HTTP/1.
    package var hasNoLength: Bool {
        guard status != 204, status != 304 else { return false }
        return transferCoding.map { $0 != "chunked" } ?? (self["Content-Length"] == nil)
    }

    /// The response headers of the complete object, if this is a response to a GET for a part of the object.
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

// Redirects, and captive portals.
extension ResponseHead {
    /// The requested address and the address in `Location`.
    private var redirection: (from: URL, to: URL)? {
        guard let place = self["Location"], let base = URL(string: url), let target = URL(string: place, relativeTo: base) else {
            return nil
        }
        return (base, target)
    }

    /// `true` for a redirect over http to another host. Any system on the way may have sent it, because only https proves the server.
    var mayLeadToAPortal: Bool {
        guard let (base, target) = redirection, base.scheme?.lowercased() == "http", let host = target.host else { return false }
        if host.lowercased() != base.host?.lowercased() { return true }
        // To the same one with encryption is what servers do.
        return target.scheme?.lowercased() == "http" && (target.port ?? 80) != (base.port ?? 80)
    }

    /// `true` for a redirect over http to another file name at the same host, as a captive portal sends it in the name of the host. A file that
    /// was moved keeps its name.
    var leadsToAnotherName: Bool {
        guard let (base, target) = redirection, base.scheme?.lowercased() == "http",
            target.host?.lowercased() == base.host?.lowercased()
        else { return false }
        return target.scheme?.lowercased() == "http" && target.lastPathComponent != base.lastPathComponent
    }

    /// `true` for any redirect over http.
    var mayLeadToALogIn: Bool {
        (300..<400).contains(status) && status != 304 && isUnencrypted
    }

    /// `true` for a redirect to https at the same host, as servers send it to every client.
    var leadsToEncryption: Bool {
        guard let (base, target) = redirection else { return false }
        return target.scheme?.lowercased() == "https" && target.host?.lowercased() == base.host?.lowercased()
    }

    /// `true` if the response came over http, so that another system than the server may have sent it.
    var isUnencrypted: Bool { URL(string: url)?.scheme?.lowercased() == "http" }

    /// `true` for a web page.
    var isPage: Bool {
        let type = self["Content-Type"]?.lowercased() ?? ""
        return type.hasPrefix("text/html") || type.hasPrefix("application/xhtml")
    }

    /// `true` for a web page, or a redirect to another host, that a captive portal may have sent.
    var mayBeOfAPortal: Bool {
        mayLeadToAPortal || isPage && (200..<300).contains(status) && isUnencrypted
    }

    /// `true` for a web page in place of another kind of file. A captive portal answers 200 for every name, so a thousand names would be tried.
    func isPage(inPlaceOf plan: UploadPlan) -> Bool {
        let name = plan.order.fileName.lowercased()
        return isPage && !name.hasSuffix(".html") && !name.hasSuffix(".htm")
    }
}
