import Foundation

/// The handshake that opens a web socket: the client's HTTP request and the required response. RFC 6455, section 4, defines the
/// rules.
package struct WebSocketHandshake: Equatable, Sendable {
    /// The reason why a web socket could not be opened.
    package struct Refusal: Error, Equatable, Sendable {
        /// The headers of the server's response. `nil` if the bytes are not an HTTP response.
        package var head: ResponseHead?
        package var why: String
    }

    /// The maximum number of bytes of a response's headers, including the status line.
    static let headLimit = 256 * 1024

    /// The address, with the scheme `http` or `https`.
    package let url: String
    /// The headers of the request. The headers of the handshake are not included.
    private let headers: [HeaderField]
    /// The offered subprotocols, from the most preferred to the least preferred.
    package let offered: [String]
    /// The random key, which consists of 16 bytes in base64.
    package let key: String
    /// The value that the server must return in response to the key.
    private let expected: String

    /// - Parameters:
    ///   - headers: The app's headers. These headers may contain subprotocols, of which the preferred subprotocol is first. The
    ///     headers may also contain a key that replaces the random key.
    ///   - accept: Returns the expected value for a key. This value is the SHA-1 of ``proof(of:)`` in base64.
    package init(url: String, headers: [HeaderField], key: String, accept: (String) -> String) {
        func values(_ name: String) -> [String] { headers.filter { $0.name.lowercased() == name }.map(\.value) }
        self.url = url
        self.headers = headers.filter { !Self.own.contains($0.name.lowercased()) }
        var offered: [String] = []
        for name in values("sec-websocket-protocol").flatMap(Self.tokens) where !offered.contains(name) {
            offered.append(name)
        }
        self.offered = offered
        self.key = values("sec-websocket-key").first { Data(base64Encoded: $0)?.count == 16 } ?? key
        expected = accept(self.key)
    }

    /// Returns the text whose digest the response must contain. The digest proves that the server read the key.
    package static func proof(of key: String) -> Data { Data((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").utf8) }

    /// Headers that belong to the handshake, and headers that would announce a body.
    private static let own: Set<String> = [
        "upgrade", "connection", "content-length", "transfer-encoding", "expect", "te", "sec-websocket-key",
        "sec-websocket-version", "sec-websocket-protocol", "sec-websocket-extensions",
    ]

    // MARK: The request

    /// The bytes of the handshake request.
    package var request: Data {
        let address = URLComponents(string: url)
        let path = address?.percentEncodedPath ?? ""
        let query = address?.percentEncodedQuery.map { "?\($0)" } ?? ""
        var lines = ["GET \(path.isEmpty ? "/" : path)\(query) HTTP/1.1"]
        func has(_ name: String) -> Bool { headers.contains { $0.name.lowercased() == name } }
        if !has("host") { lines.append("Host: \(Self.host(of: address))") }
        lines += ["Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Key: \(key)", "Sec-WebSocket-Version: 13"]
        if !offered.isEmpty { lines.append("Sec-WebSocket-Protocol: \(offered.joined(separator: ", "))") }
        if let user = address?.user, !has("authorization") {
            let pair = Data("\(user):\(address?.password ?? "")".utf8).base64EncodedString()
            lines.append("Authorization: Basic \(pair)")
        }
        lines += headers.map { "\($0.name): \($0.value)" }
        return Data((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8)
    }

    private static func host(of address: URLComponents?) -> String {
        let name = address?.encodedHost ?? ""
        guard let port = address?.port, port != (address?.scheme?.lowercased() == "https" ? 443 : 80) else { return name }
        return "\(name):\(port)"
    }

    // MARK: The response

    /// Reads the response headers and removes their bytes from `bytes`. Returns `nil` if the headers are not complete yet.
    package func answer(in bytes: inout Data) throws(Refusal) -> ResponseHead? {
        while true {
            guard zip(bytes, "HTTP/1.".utf8).allSatisfy({ $0 == $1 }) else { throw Refusal(why: "the response is not HTTP/1.1") }
            guard let end = bytes.firstRange(of: Data("\r\n\r\n".utf8)) else {
                guard bytes.count <= Self.headLimit else {
                    throw Refusal(why: "the response has more than \(Self.headLimit) bytes of headers")
                }
                return nil
            }
            guard bytes.distance(from: bytes.startIndex, to: end.lowerBound) <= Self.headLimit else {
                throw Refusal(why: "the response has more than \(Self.headLimit) bytes of headers")
            }
            let lines = String(decoding: bytes[..<end.lowerBound], as: UTF8.self).components(separatedBy: "\r\n")
            bytes = Data(bytes[end.upperBound...])
            let words = (lines.first ?? "").split(separator: " ", maxSplits: 2)
            guard words.count >= 2, let status = Int(words[1]), (100...999).contains(status) else {
                throw Refusal(why: "the response has no status code")
            }
            // Interim responses are skipped.
            if status < 200, status != 101 { continue }
            return ResponseHead(status: status, headers: lines.dropFirst().compactMap(Self.field), url: url)
        }
    }

    private static func field(_ line: String) -> HeaderField? {
        guard let colon = line.firstIndex(of: ":") else { return nil }
        return HeaderField(
            String(line[..<colon]), line[line.index(after: colon)...].trimmingCharacters(in: .whitespaces))
    }

    /// Returns the subprotocol that the server chose, or `nil` if the server chose no subprotocol.
    package func judge(_ head: ResponseHead) throws(Refusal) -> String? {
        func refused(_ why: String) -> Refusal { Refusal(head: head, why: why) }
        func values(_ name: String) -> [String] { head.headers.filter { $0.name.lowercased() == name }.map(\.value) }
        guard head.status == 101 else { throw refused("the server responded with status \(head.status)") }
        guard values("upgrade").flatMap(Self.tokens).contains(where: { $0.lowercased() == "websocket" }) else {
            throw refused("the server's response has no header \"Upgrade: websocket\"")
        }
        guard values("connection").flatMap(Self.tokens).contains(where: { $0.lowercased() == "upgrade" }) else {
            throw refused("the server's response has no header \"Connection: Upgrade\"")
        }
        guard values("sec-websocket-accept") == [expected] else {
            throw refused("the server's Sec-WebSocket-Accept header does not match the request")
        }
        guard values("sec-websocket-extensions").allSatisfy(\.isEmpty) else {
            throw refused("the server uses an extension that was not offered")
        }
        let chosen = values("sec-websocket-protocol").filter { !$0.isEmpty }
        guard chosen.count <= 1, chosen.allSatisfy(offered.contains) else {
            throw refused("the server chose a subprotocol that was not offered")
        }
        return chosen.first
    }

    private static func tokens(_ list: String) -> [String] {
        list.split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) }.filter { !$0.isEmpty }
    }
}
