import Foundation

extension ResponseScript {
    /// Returns a complete response with a correct `Content-Length`.
    public static func status(
        _ code: Int, headers: HeaderList = [:], body: Payload = ""
    ) -> ResponseScript {
        var all = headers
        // The statuses 204 and 304 have no body. RFC 9110 forbids (204) or discourages (304) a length for these statuses.
        if code != 204 && code != 304 { all.append("Content-Length", "\(body.count)") }
        return ResponseScript([.status(code), .headers(all), .body(body)])
    }

    /// Returns a response with a JSON body and a status, 200 by default.
    public static func json(_ json: String, status: Int = 200, headers: HeaderList = [:]) -> ResponseScript {
        var all: HeaderList = ["Content-Type": "application/json"]
        all.lines += headers.lines
        return .status(status, headers: all, body: .text(json))
    }

    /// Returns a file that supports ranges and conditions as RFC 9110 requires.
    public static func file(
        _ payload: Payload, etag: String? = nil, lastModified: String? = nil, supportsRange: Bool = true
    ) -> ResponseScript {
        .served(
            ServedFile(payload, etag: etag, lastModified: lastModified, supportsRange: supportsRange))
    }

    /// Returns a file with all options: pace, interruption, wrong ranges.
    public static func served(_ file: ServedFile) -> ResponseScript { ResponseScript([.resource(file)]) }

    /// Returns a file whose responses are all cut after `count` body bytes, although the full length was announced. The file
    /// supports ranges, so a client may request the remaining bytes. Use a list of scripts if the second response has to be
    /// complete.
    public static func cutAfter(
        _ count: Int, of payload: Payload, etag: String? = nil, supportsRange: Bool = true,
        by ending: ServedFile.Ending = .cut
    ) -> ResponseScript {
        var file = ServedFile(payload, etag: etag, supportsRange: supportsRange)
        file.interruption = .init(afterBytes: count, ending: ending)
        return .served(file)
    }

    /// Returns a JSON response that takes `seconds` from the first byte to the last byte, like a weather service on a slow
    /// connection. The response is chunked and has no validator, so the bytes are lost if the connection ends.
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

    /// Returns a redirect.
    public static func redirect(_ code: Int = 302, to location: String) -> ResponseScript {
        .status(code, headers: ["Location": location])
    }

    /// Accepts the request and never responds.
    public static let silence: ResponseScript = [.stall]

    /// Closes the connection without a response when the request is complete.
    public static let hangUp: ResponseScript = [.cut]

    /// Resets the connection without a response when the request is complete.
    public static let resetConnection: ResponseScript = [.reset]

    /// Returns a response with `count` header lines of `length` bytes each. A careful client does not read so many headers.
    public static func headerFlood(count: Int, length: Int = 1000) -> ResponseScript {
        let value = String(repeating: "x", count: length)
        let lines = (0..<count).map { HeaderLine("X-Flood-\($0)", value) }
        return .status(200, headers: HeaderList(lines))
    }
}

extension ResponseScript {
    /// Returns the response to HEAD, with the headers that a GET would receive.
    static func head(_ headers: HeaderList) -> ResponseScript { ResponseScript([.status(200), .headers(headers)]) }

    static func xml(_ text: String, status: Int = 200) -> ResponseScript {
        let declared = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\(text)"
        return .status(status, headers: ["Content-Type": "application/xml"], body: .text(declared))
    }
}
