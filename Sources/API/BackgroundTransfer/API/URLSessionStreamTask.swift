import Foundation
import FoundationNetworking

/// A connection that carries bytes in both directions. **This module does not support stream tasks.** The declaration exists only
/// so that code for iOS compiles. The task fails with `URLError.unsupportedURL`.
open class URLSessionStreamTask: URLSessionTask, @unchecked Sendable {  // Unchecked, because the base class is unchecked Sendable
    static let leftOut: [String: String] = [
        NSLocalizedDescriptionKey: "BackgroundTransfer has no stream tasks. Use a network library such as SwiftNIO."
    ]

    private var refusal: URLError { URLError(.unsupportedURL, userInfo: Self.leftOut) }

    /// Calls the handler with `URLError.unsupportedURL`.
    @preconcurrency open func readData(
        ofMinLength minBytes: Int, maxLength maxBytes: Int, timeout: TimeInterval,
        completionHandler: @escaping @Sendable (Data?, Bool, (any Error)?) -> Void
    ) { completionHandler(nil, true, refusal) }

    /// Calls the handler with `URLError.unsupportedURL`.
    @preconcurrency open func write(
        _ data: Data, timeout: TimeInterval, completionHandler: @escaping @Sendable ((any Error)?) -> Void
    ) {
        completionHandler(refusal)
    }

    /// - Throws: `URLError.unsupportedURL` at every call.
    open func readData(ofMinLength minBytes: Int, maxLength maxBytes: Int, timeout: TimeInterval) async throws -> (Data?, Bool) {
        throw refusal
    }

    /// - Throws: `URLError.unsupportedURL` at every call.
    open func write(_ data: Data, timeout: TimeInterval) async throws { throw refusal }

    /// Does nothing, because no stream is open.
    open func closeWrite() {}
    /// Does nothing, because no stream is open.
    open func closeRead() {}
    /// Does nothing, because no byte is ever sent.
    open func startSecureConnection() {}
}
