import Foundation
import FoundationNetworking

/// The protocol classes for addresses that need no network: `data:` and `file:`.
enum AddressProtocols {
    /// The protocol classes for `data:` and `file:` addresses. Sessions try these classes after the classes of the configuration.
    static let all: [AnyClass] = [DataAddressProtocol.self, FileAddressProtocol.self]
}

/// A protocol for `data:` addresses (RFC 2397), which contain the media type and the bytes.
final class DataAddressProtocol: URLProtocol {
    override class func canInit(with request: URLRequest) -> Bool { request.url?.scheme?.lowercased() == "data" }

    override func startLoading() {
        guard let url = request.url, let content = DataAddress(url.absoluteString) else {
            client?.urlProtocol(self, didFailWithError: URLError(.badURL))
            return
        }
        let response = URLResponse(
            url: url, mimeType: content.mediaType, expectedContentLength: content.bytes.count, textEncodingName: content.charset)
        client?.urlProtocol(self, didReceive: response, cacheStoragePolicy: .notAllowed)
        client?.urlProtocol(self, didLoad: content.bytes)
        client?.urlProtocolDidFinishLoading(self)
    }
}

/// The content of a `data:` address. Source of the rule: RFC 2397.
struct DataAddress: Equatable {
    var mediaType = "text/plain"
    /// The charset as written in the address, or `nil` if the address contains no charset. The RFC's default for text is
    /// US-ASCII, but as on iOS the default is not reported.
    var charset: String?
    var bytes: Data

    /// Parses an address. Returns `nil` if the comma is missing, or if the address declares base64 and the text is not valid
    /// base64.
    init?(_ address: String) {
        guard let comma = address.firstIndex(of: ","), let colon = address.firstIndex(of: ":"), colon < comma else { return nil }
        var words = address[address.index(after: colon)..<comma].split(separator: ";", omittingEmptySubsequences: false)
        let text = address[address.index(after: comma)...]
        // A media type consists of two names with a slash between them. The value of a parameter is a token or a quoted text.
        guard !words.contains(where: { $0.contains("%") }) else { return nil }
        let isBase64 = words.last?.trimmingCharacters(in: .whitespaces).lowercased() == "base64"
        if isBase64 { words.removeLast() }
        if let type = words.first, !type.isEmpty {
            guard type.split(separator: "/", omittingEmptySubsequences: false).filter({ !$0.isEmpty }).count == 2 else {
                return nil
            }
            mediaType = String(type)
        }
        // If the address contains a parameter several times, the first value is used.
        let named = words.dropFirst().map { $0.split(separator: "=", maxSplits: 1) }.first {
            $0.count == 2 && $0[0].lowercased() == "charset"
        }
        if let named { charset = named[1].trimmingCharacters(in: ["\""]) }
        guard let plain = Self.unescaped(text) else { return nil }
        guard isBase64 else {
            bytes = plain
            return
        }
        guard let decoded = Data(base64Encoded: plain, options: .ignoreUnknownCharacters) else { return nil }
        bytes = decoded
    }

    /// Returns the bytes of a text with escapes such as `%41`, or `nil` if an escape is not valid.
    private static func unescaped(_ text: Substring) -> Data? {
        var bytes = Data()
        var rest = Array(text.utf8)[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            guard rest.count >= 2, let value = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16) else {
                return nil
            }
            rest = rest.dropFirst(2)
            bytes.append(value)
        }
        return bytes
    }
}

/// A protocol for `file:` addresses, which reads files for which this process has read permission.
final class FileAddressProtocol: URLProtocol {
    /// The maximum number of bytes of one read.
    private static let piece = 256 << 10

    override class func canInit(with request: URLRequest) -> Bool { request.url?.isFileURL == true }

    override func startLoading() {
        guard let url = request.url else { return }
        var information = stat()
        guard stat(url.path, &information) == 0 else {
            return fail(errno == EACCES ? .noPermissionsToReadFile : .fileDoesNotExist)
        }
        guard information.st_mode & S_IFMT == S_IFREG else {
            return fail(information.st_mode & S_IFMT == S_IFDIR ? .fileIsDirectory : .cannotOpenFile)
        }
        guard let file = FileHandle(forReadingAtPath: url.path) else { return fail(.noPermissionsToReadFile) }
        let response = URLResponse(
            url: url, mimeType: "application/octet-stream", expectedContentLength: Int(information.st_size), textEncodingName: nil
        )
        client?.urlProtocol(self, didReceive: response, cacheStoragePolicy: .notAllowed)
        do {
            while let piece = try file.read(upToCount: Self.piece), !piece.isEmpty {
                client?.urlProtocol(self, didLoad: piece)
                // The next bytes of the file are read only if the receiver has room for them.
                if let load = client as? CustomLoad, !load.waitForRoom() { return }
            }
            client?.urlProtocolDidFinishLoading(self)
        } catch {
            fail(.cannotOpenFile)
        }
    }

    private func fail(_ code: URLError.Code) { client?.urlProtocol(self, didFailWithError: URLError(code)) }
}
