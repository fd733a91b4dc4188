/// A request that removes the data of a cancelled or failed upload from its server. The ledger stores the request until the server
/// has responded.
package struct ServerRemoval: Codable, Equatable, Sendable {
    private let method: String
    private let url: String
    private let headers: [HeaderField]
    private let s3: S3Access?
    private let clockSkew: Double?
    private let authorityFile: String?
    private let idleTimeout: Double

    package init(_ request: WireRequest) {
        (method, url, headers, idleTimeout) = (request.method, request.url, request.headers, request.idleTimeout)
        (s3, clockSkew, authorityFile) = (request.signing?.access, request.signing?.clockSkew, request.authorityFile)
    }

    package var request: WireRequest {
        var request = WireRequest(
            method: method, url: url, headers: headers, idleTimeout: idleTimeout, maximumRedirects: 0,
            maximumBodyBytes: UploadPlan.maximumAnswer)
        request.leastRate = WireRequest.leastUsefulRate
        request.signing = s3.map { S3Signing($0, clockSkew: clockSkew ?? 0) }
        request.authorityFile = authorityFile
        return request
    }

    /// The number of seconds after which the data is not removed any more. The credentials may be wrong, or the server may never
    /// return.
    package static let patience = 30.0 * 86_400

    /// Returns the pause before the next request, in seconds.
    ///
    /// - Parameter attempts: the number of requests so far.
    package static func pause(after attempts: Int) -> Double { min(60 * Double(1 << min(max(attempts - 1, 0), 10)), 6 * 3_600) }

    /// Returns whether the request is not sent again. A missing response, an error of the server, and a response that a captive
    /// portal may have sent do not show that the data was removed.
    package static func isOver(_ end: WireEnd) -> Bool {
        guard let head = end.head, end.failure != .cancelled else { return false }
        if head.mayBeOfAPortal || [401, 407, 408, 423, 425, 429].contains(head.status) { return false }
        return head.status < 500
    }
}
