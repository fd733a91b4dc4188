/// A file on the server. The type turns a request into a response. The type follows the rules of RFC 9110 for ranges and
/// conditions, and on demand makes the mistakes of real servers. The type has no side effects: the response is a list of steps.
public struct ServedFile: Sendable, Equatable, Codable {
    /// The way in which an interrupted response ends.
    public enum Ending: String, Sendable, Codable {
        case cut, reset, stall
    }

    /// An early end of the response. The announced length is still the full length.
    public struct Interruption: Sendable, Equatable, Codable {
        /// The number of body bytes that are sent before the response ends early.
        public var afterBytes: Int
        /// The way in which the response ends early.
        public var ending: Ending

        /// Creates an interruption after a number of body bytes.
        public init(afterBytes: Int, ending: Ending = .cut) {
            self.afterBytes = afterBytes
            self.ending = ending
        }
    }

    /// A fault in a response to a range request. If a client does not check the response, each of these faults corrupts the
    /// client's file.
    public enum RangeFault: Sendable, Equatable, Codable {
        /// The status is 206, although `If-Range` names another version of the file.
        case ignoresIfRange
        /// `Content-Range` and the bytes begin this many bytes after the requested start.
        case shiftedStart(Int)
        /// `Content-Range` contains another total.
        case wrongTotal(Int)
        /// The status is 206, but `Content-Range` is missing.
        case missingContentRange
        /// The status is 206, and the ETag differs from the ETag of the complete file.
        case otherETag(String)
        /// The status is 416 for every range, as with some caches.
        case alwaysUnsatisfiable
        /// The response to every range request has this status and no body.
        case status(Int)
    }

    /// The bytes of the current version.
    public var payload: Payload
    /// The entity tag with its quotes, for example `"\"v1\""` or `"W/\"v1\""`.
    public var etag: String?
    /// An HTTP date, written and compared as text.
    public var lastModified: String?
    /// `true` if the server supports ranges. If `false`, the server sends no `Accept-Ranges`, and every response is complete.
    public var supportsRange: Bool
    /// The media type.
    public var contentType = "application/octet-stream"
    /// The sizes of the pieces in which the body is sent, and the pauses between the pieces.
    public var delivery: ResponseScript.Delivery = .atOnce
    /// The early end, if there is one.
    public var interruption: Interruption?
    /// The fault in responses to ranges.
    public var rangeFault: RangeFault?

    /// Creates a correct file. Set the other properties to simulate a server with faults.
    public init(
        _ payload: Payload, etag: String? = nil, lastModified: String? = nil, supportsRange: Bool = true
    ) {
        self.payload = payload
        self.etag = etag
        self.lastModified = lastModified
        self.supportsRange = supportsRange
    }

    /// Returns the response to a request with these headers.
    package func answer(method: String, headers: HeaderList) -> [ResponseScript.Step] {
        if let wanted = headers["If-Match"], !matches(wanted, weakly: false) {
            return bodiless(412, ["Content-Length": "0"])
        }
        if let known = headers["If-None-Match"] {
            if matches(known, weakly: true) { return bodiless(304, [:]) }
        } else if let since = headers["If-Modified-Since"], since == lastModified {
            return bodiless(304, [:])
        }
        // A response without a body cannot be interrupted in the body.
        if method == "HEAD" {
            var quiet = self
            quiet.interruption = nil
            return quiet.whole()
        }
        // Range is defined only for GET (RFC 9110, 14.2).
        guard method == "GET", supportsRange, let text = headers["Range"], conditionHolds(headers["If-Range"]) else {
            return whole()
        }
        if rangeFault == .alwaysUnsatisfiable { return unsatisfiable() }
        if case .status(let code) = rangeFault { return [.status(code), .headers(["Content-Length": "0"])] }
        switch ByteRange.parse(text, length: payload.count) {
        case .ignored: return whole()
        case .unsatisfiable: return unsatisfiable()
        case .satisfiable(let range): return partial(range)
        }
    }

    /// Returns whether `If-Range` matches. The comparison is strong: a weak tag never matches, in the request or in the file.
    private func conditionHolds(_ ifRange: String?) -> Bool {
        guard let ifRange, rangeFault != .ignoresIfRange else { return true }
        if ifRange.hasPrefix("\"") { return ifRange == etag }
        if ifRange.hasPrefix("W/") { return false }
        return ifRange == lastModified
    }

    private func matches(_ list: String, weakly: Bool) -> Bool {
        if list == "*" { return true }
        guard let etag else { return false }
        let bare: (Substring) -> Substring = { $0.hasPrefix("W/") ? $0.dropFirst(2) : $0 }
        return list.split(separator: ",").contains { entry in
            let tag = entry.drop { $0 == " " }
            if weakly { return bare(tag) == bare(etag[...]) }
            return tag == etag && !etag.hasPrefix("W/")
        }
    }

    private var validators: HeaderList {
        var list = HeaderList()
        if let etag { list.append("ETag", etag) }
        if let lastModified { list.append("Last-Modified", lastModified) }
        return list
    }

    private func bodiless(_ status: Int, _ extra: HeaderList) -> [ResponseScript.Step] {
        [.status(status), .headers(validators), .headers(extra)]
    }

    private func unsatisfiable() -> [ResponseScript.Step] {
        bodiless(416, ["Content-Range": "bytes */\(payload.count)", "Content-Length": "0"])
    }

    private func whole() -> [ResponseScript.Step] {
        var list = validators
        list.append("Content-Type", contentType)
        if supportsRange { list.append("Accept-Ranges", "bytes") }
        return [.status(200), .headers(list)] + framed(payload)
    }

    private func partial(_ asked: Range<Int>) -> [ResponseScript.Step] {
        var range = asked
        var total = payload.count
        var list = validators
        if case .shiftedStart(let distance) = rangeFault {
            let lower = min(max(asked.lowerBound + distance, 0), asked.upperBound - 1)
            range = lower..<asked.upperBound
        }
        if case .wrongTotal(let claimed) = rangeFault { total = claimed }
        if case .otherETag(let other) = rangeFault {
            list.lines.removeAll { $0.name == "ETag" }
            list.append("ETag", other)
        }
        list.append("Content-Type", contentType)
        if rangeFault != .missingContentRange {
            list.append("Content-Range", "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(total)")
        }
        return [.status(206), .headers(list)] + framed(payload.slice(range))
    }

    /// Returns the steps of a response with this body. The steps send the length or the chunked coding, the pieces of the body,
    /// and the early end if the file has an interruption.
    private func framed(_ body: Payload) -> [ResponseScript.Step] {
        var steps: [ResponseScript.Step] = [
            .headers(
                delivery.isChunked ? ["Transfer-Encoding": "chunked"] : ["Content-Length": "\(body.count)"])
        ]
        if let interruption, interruption.afterBytes < body.count {
            steps.append(.body(body.slice(0..<interruption.afterBytes), delivery))
            switch interruption.ending {
            case .cut: steps.append(.cut)
            case .reset: steps.append(.reset)
            case .stall: steps.append(.stall)
            }
        } else {
            steps.append(.body(body, delivery))
            if delivery.isChunked { steps.append(.chunkEnd()) }
        }
        return steps
    }
}
