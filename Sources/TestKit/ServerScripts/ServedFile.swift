/// A file on the server: turns one request into one answer, with the range and condition rules of RFC 9110, and on
/// demand with the mistakes real servers make. Pure: the answer is a list of steps.
public struct ServedFile: Sendable, Equatable, Codable {
    /// How an interrupted answer ends.
    public enum Ending: String, Sendable, Codable {
        case cut, reset, stall
    }

    /// Ends the answer early. The announced length stays the full one.
    public struct Interruption: Sendable, Equatable, Codable {
        /// Body bytes of this answer sent before.
        public var afterBytes: Int
        /// What happens then.
        public var ending: Ending

        /// An interruption after so many body bytes of the answer.
        public init(afterBytes: Int, ending: Ending = .cut) {
            self.afterBytes = afterBytes
            self.ending = ending
        }
    }

    /// A lie in a 206: each would corrupt a client that does not check.
    public enum RangeFault: Sendable, Equatable, Codable {
        /// 206 although `If-Range` names another version.
        case ignoresIfRange
        /// `Content-Range` (and the bytes) begin this many bytes from where they were asked.
        case shiftedStart(Int)
        /// `Content-Range` claims another total.
        case wrongTotal(Int)
        /// 206 without `Content-Range`.
        case missingContentRange
        /// 206 whose ETag is another one than that of the whole file.
        case otherETag(String)
        /// 416 for every range, as some caches answer.
        case alwaysUnsatisfiable
        /// Every range gets this status, without a body or a word why.
        case status(Int)
    }

    /// The bytes of the current version.
    public var payload: Payload
    /// Written as given, quotes included: `"\"v1\""` or `"W/\"v1\""`.
    public var etag: String?
    /// An HTTP date, written and compared as text.
    public var lastModified: String?
    /// `false`: no `Accept-Ranges`, every answer is the whole.
    public var supportsRange: Bool
    /// The media type.
    public var contentType = "application/octet-stream"
    /// The pace of the body.
    public var delivery: ResponseScript.Delivery = .atOnce
    /// An early end.
    public var interruption: Interruption?
    /// A lie about ranges.
    public var rangeFault: RangeFault?

    /// A file that tells the truth; set the other properties to make it less reliable.
    public init(
        _ payload: Payload, etag: String? = nil, lastModified: String? = nil, supportsRange: Bool = true
    ) {
        self.payload = payload
        self.etag = etag
        self.lastModified = lastModified
        self.supportsRange = supportsRange
    }

    /// The answer to a request with these headers.
    package func answer(method: String, headers: HeaderList) -> [ResponseScript.Step] {
        if let wanted = headers["If-Match"], !matches(wanted, weakly: false) {
            return bodiless(412, ["Content-Length": "0"])
        }
        if let known = headers["If-None-Match"] {
            if matches(known, weakly: true) { return bodiless(304, [:]) }
        } else if let since = headers["If-Modified-Since"], since == lastModified {
            return bodiless(304, [:])
        }
        // An answer without a body cannot be interrupted in it.
        if method == "HEAD" {
            var quiet = self
            quiet.interruption = nil
            return quiet.whole()
        }
        // RFC 9110, 14.2: Range is defined for GET only.
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

    /// `If-Range` compares strongly: a weak tag never holds, neither as asked nor as ours.
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

    /// Length or chunked coding, the bytes at their pace, and the early end if there is one.
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
