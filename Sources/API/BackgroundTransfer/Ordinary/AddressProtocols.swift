import Foundation
import FoundationNetworking

/// What an address holds itself, or a file of this machine.
enum AddressProtocols {
    /// Asked after the classes of a configuration.
    static let all: [AnyClass] = [DataAddressProtocol.self, FileAddressProtocol.self]
}

/// `data:` addresses (RFC 2397): media type and bytes stand in the address.
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

/// What a `data:` address says. Source of the rule: RFC 2397.
struct DataAddress: Equatable {
    var mediaType = "text/plain"
    /// As written. The RFC's own for a text that names none is US-ASCII; as on iOS, nobody says so.
    var charset: String?
    var bytes: Data

    /// `nil`: no comma, or no base64 where it says so.
    init?(_ address: String) {
        guard let comma = address.firstIndex(of: ","), let colon = address.firstIndex(of: ":"), colon < comma else { return nil }
        var words = address[address.index(after: colon)..<comma].split(separator: ";", omittingEmptySubsequences: false)
        let text = address[address.index(after: comma)...]
        // A type is a name, a stroke and a name; values are tokens or quoted.
        guard !words.contains(where: { $0.contains("%") }) else { return nil }
        let isBase64 = words.last?.trimmingCharacters(in: .whitespaces).lowercased() == "base64"
        if isBase64 { words.removeLast() }
        if let type = words.first, !type.isEmpty {
            guard type.split(separator: "/", omittingEmptySubsequences: false).filter({ !$0.isEmpty }).count == 2 else {
                return nil
            }
            mediaType = String(type)
        }
        // The first of a name counts.
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

    /// `%41` is a byte. `nil`: what follows a percent sign is none.
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

/// `file:` addresses: the bytes of a file that this process may read.
final class FileAddressProtocol: URLProtocol {
    /// Bytes read in one go.
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
                // A large file goes no faster than it is read.
                if let load = client as? CustomLoad, !load.waitForRoom() { return }
            }
            client?.urlProtocolDidFinishLoading(self)
        } catch {
            fail(.cannotOpenFile)
        }
    }

    private func fail(_ code: URLError.Code) { client?.urlProtocol(self, didFailWithError: URLError(code)) }
}
