import Foundation
import FoundationNetworking

/// A connection that carries bytes both ways. **Left out**: it is declared for code that names it, and ends in `URLError.unsupportedURL`.
open class URLSessionStreamTask: URLSessionTask, @unchecked Sendable {  // because its base is
    static let leftOut: [String: String] = [
        NSLocalizedDescriptionKey: "BackgroundTransfer has no stream tasks. Use Network libraries such as SwiftNIO for them."
    ]

    private var refusal: URLError { URLError(.unsupportedURL, userInfo: Self.leftOut) }

    /// Calls back with `URLError.unsupportedURL`.
    @preconcurrency open func readData(
        ofMinLength minBytes: Int, maxLength maxBytes: Int, timeout: TimeInterval,
        completionHandler: @escaping @Sendable (Data?, Bool, (any Error)?) -> Void
    ) { completionHandler(nil, true, refusal) }

    /// Calls back with `URLError.unsupportedURL`.
    @preconcurrency open func write(
        _ data: Data, timeout: TimeInterval, completionHandler: @escaping @Sendable ((any Error)?) -> Void
    ) {
        completionHandler(refusal)
    }

    /// - Throws: always `URLError.unsupportedURL`.
    open func readData(ofMinLength minBytes: Int, maxLength maxBytes: Int, timeout: TimeInterval) async throws -> (Data?, Bool) {
        throw refusal
    }

    /// - Throws: always `URLError.unsupportedURL`.
    open func write(_ data: Data, timeout: TimeInterval) async throws { throw refusal }

    /// There is nothing to close.
    open func closeWrite() {}
    /// There is nothing to close.
    open func closeRead() {}
    /// Nothing is ever sent.
    open func startSecureConnection() {}
}
