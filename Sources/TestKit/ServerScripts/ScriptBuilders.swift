import Foundation

extension ResponseScript {
    /// A complete answer with a correct `Content-Length`.
    public static func status(
        _ code: Int, headers: HeaderList = [:], body: Payload = ""
    ) -> ResponseScript {
        var all = headers
        // 204 and 304 have no body and RFC 9110 forbids (204) or discourages (304) a length there.
        if code != 204 && code != 304 { all.append("Content-Length", "\(body.count)") }
        return ResponseScript([.status(code), .headers(all), .body(body)])
    }

    /// 200 with a JSON body.
    public static func json(_ json: String, status: Int = 200, headers: HeaderList = [:]) -> ResponseScript {
        var all: HeaderList = ["Content-Type": "application/json"]
        all.lines += headers.lines
        return .status(status, headers: all, body: .text(json))
    }

    /// A file that answers ranges and conditions as RFC 9110 says.
    public static func file(
        _ payload: Payload, etag: String? = nil, lastModified: String? = nil, supportsRange: Bool = true
    ) -> ResponseScript {
        .served(
            ServedFile(payload, etag: etag, lastModified: lastModified, supportsRange: supportsRange))
    }

    /// A file with everything adjustable: pace, cut, lies about ranges.
    public static func served(_ file: ServedFile) -> ResponseScript { ResponseScript([.resource(file)]) }

    /// A file whose every answer is cut after `count` body bytes, the full length having been announced. It honours
    /// ranges, so a client may come back for the rest; give a list of scripts when the second answer shall be whole.
    public static func cutAfter(
        _ count: Int, of payload: Payload, etag: String? = nil, supportsRange: Bool = true,
        by ending: ServedFile.Ending = .cut
    ) -> ResponseScript {
        var file = ServedFile(payload, etag: etag, supportsRange: supportsRange)
        file.interruption = .init(afterBytes: count, ending: ending)
        return .served(file)
    }

    /// A JSON answer that takes `seconds` from the first byte to the last, as a weather service on a bad line would
    /// give it: chunked and without any validator, so only the living connection saves the bytes.
    public static func dripping(_ json: String, seconds: Double, pieces: Int = 20) -> ResponseScript {
        let count = max(1, min(pieces, json.utf8.count))
        let size = max(1, (json.utf8.count + count - 1) / count)
        let gaps = max(1, (json.utf8.count + size - 1) / size - 1)
        return ResponseScript([
            .status(200),
            .headers(["Content-Type": "application/json", "Transfer-Encoding": "chunked"]),
            .drip(.text(json), chunkSize: size, interval: seconds / Double(gaps), isChunked: true),
            .chunkEnd(),
        ])
    }

    /// A redirect.
    public static func redirect(_ code: Int = 302, to location: String) -> ResponseScript {
        .status(code, headers: ["Location": location])
    }

    /// Takes the request and never answers.
    public static let silence: ResponseScript = [.stall]

    /// Closes without an answer when the request is complete.
    public static let hangUp: ResponseScript = [.cut]

    /// Resets without an answer when the request is complete.
    public static let resetConnection: ResponseScript = [.reset]

    /// A head of `count` header lines of `length` bytes each: more than a careful client reads.
    public static func headerFlood(count: Int, length: Int = 1000) -> ResponseScript {
        let value = String(repeating: "x", count: length)
        let lines = (0..<count).map { HeaderLine("X-Flood-\($0)", value) }
        return .status(200, headers: HeaderList(lines))
    }
}

extension ResponseScript {
    /// The answer to HEAD: what the body would be like.
    static func head(_ headers: HeaderList) -> ResponseScript { ResponseScript([.status(200), .headers(headers)]) }

    static func xml(_ text: String, status: Int = 200) -> ResponseScript {
        let declared = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\(text)"
        return .status(status, headers: ["Content-Type": "application/xml"], body: .text(declared))
    }
}
