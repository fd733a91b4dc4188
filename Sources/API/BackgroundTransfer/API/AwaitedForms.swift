import Foundation
import FoundationNetworking

// The awaited forms without a delegate: a protocol of the app's may ask for them by these names.
extension URLSession {
    /// The whole answer, whatever its status.
    ///
    /// - Throws: `URLError`; `.cancelled` when the awaiting task is cancelled.
    public func data(for request: URLRequest) async throws -> (Data, URLResponse) { try await data(for: request, delegate: nil) }

    /// The whole answer, whatever its status.
    ///
    /// - Throws: `URLError`; `.cancelled` when the awaiting task is cancelled.
    public func data(from url: URL) async throws -> (Data, URLResponse) { try await data(from: url, delegate: nil) }

    /// The whole answer in a file, whatever its status. The file is the caller's, in the temporary folder.
    ///
    /// - Throws: `URLError`; `.cancelled` when the awaiting task is cancelled.
    public func download(for request: URLRequest) async throws -> (URL, URLResponse) {
        try await download(for: request, delegate: nil)
    }

    /// The whole answer in a file, whatever its status. The file is the caller's, in the temporary folder.
    ///
    /// - Throws: `URLError`; `.cancelled` when the awaiting task is cancelled.
    public func download(from url: URL) async throws -> (URL, URLResponse) { try await download(from: url, delegate: nil) }

    /// Sends a file; gives the answer, whatever its status.
    ///
    /// - Throws: `URLError`; `.cancelled` when the awaiting task is cancelled.
    public func upload(for request: URLRequest, fromFile file: URL) async throws -> (Data, URLResponse) {
        try await upload(for: request, fromFile: file, delegate: nil)
    }

    /// Sends bytes; gives the answer, whatever its status.
    ///
    /// - Throws: `URLError`; `.cancelled` when the awaiting task is cancelled.
    public func upload(for request: URLRequest, from bodyData: Data) async throws -> (Data, URLResponse) {
        try await upload(for: request, from: bodyData, delegate: nil)
    }
}
