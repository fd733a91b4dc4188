/// The values of an app's request that determine the HTTP requests.
package struct TransferRequest: Codable, Equatable, Sendable {
    package var method: String
    package var url: String
    package var headers: [HeaderField]
    /// The number of seconds without a received byte after which an attempt fails.
    package var idleTimeout: Double
    /// The maximum length of the complete file in bytes. The limit also applies to a file that arrives in several attempts.
    package var maximumBodyBytes: Int64?
    /// The rate limit in bytes per second.
    package var rateLimit: Int64?
    /// The hexadecimal digest that the complete file must have.
    package var expectedSHA256: String?
    /// The name of the file. `nil` if the app reads the result as a response.
    package var fileName: String?
    /// `true` if the result must be a file. A response that reports why no file is available is then a failure.
    var wantsOnlyFile: Bool { fileName != nil }
    /// The rate in bytes per second below which an attempt counts as stalled.
    package var leastRate: Int64 = 0
    /// `true` if a compressed response is decoded (RFC 9110, 8.4), even if the request did not ask for compression. The agent
    /// sets `false`, because a small response may decode to any size.
    package var decodesContent = false

    package init(
        method: String = "GET", url: String, headers: [HeaderField] = [], idleTimeout: Double = 60,
        maximumBodyBytes: Int64? = nil, rateLimit: Int64? = nil, expectedSHA256: String? = nil, fileName: String? = nil
    ) {
        self.fileName = fileName
        self.expectedSHA256 = expectedSHA256
        self.method = method
        self.url = url
        self.headers = headers
        self.idleTimeout = idleTimeout
        self.maximumBodyBytes = maximumBodyBytes
        self.rateLimit = rateLimit
    }

    /// `true` if the download can be resumed. If the caller sets a range or a condition, the download is not resumed, because the
    /// caller's headers are sent unchanged.
    var isResumable: Bool {
        method == "GET"
            && !names(anyOf: ["range", "if-range", "if-match", "if-none-match", "if-modified-since", "if-unmodified-since"])
    }

    /// `true` if two equal requests have the same effect as one request (RFC 9110 §9.2.2).
    var isIdempotent: Bool { Self.isIdempotent(method) }

    /// Returns whether a request can be sent again if it is unknown whether the server processed the first request (RFC 9110,
    /// 9.2.2).
    package static func isIdempotent(_ method: String) -> Bool { method != "POST" && method != "PATCH" }

    func names(anyOf wanted: Set<String>) -> Bool {
        headers.contains { wanted.contains($0.name.lowercased()) }
    }
}

/// The handling of a response's body.
package enum BodyDisposition: Equatable, Sendable {
    /// Write the body at this offset. The offset may be the offset of the last stored byte, so do not append at the end of the
    /// file (see `PartialFile`).
    case append(at: Int64)
    /// Commit `DownloadMachine.partial`, truncate the file, and write the complete body.
    case rewrite
    /// Do not write the body. The sink may also stop the attempt immediately, with the same result.
    case discard
}

/// The next action after an attempt ended.
package enum DownloadCommand: Equatable, Sendable {
    /// The complete body is stored. The app has to handle the status, for example 404.
    case finish(head: ResponseHead, resumedFrom: Int64?)
    /// Begin another attempt after this number of seconds. The attempt continues after the stored bytes.
    case retry(after: Double, TransferTrouble)
    /// Begin another attempt after this number of seconds. The stored bytes are discarded before the attempt.
    case restart(after: Double, TransferTrouble)
    case fail(TransferTrouble)
}
