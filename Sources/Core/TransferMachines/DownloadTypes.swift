/// The values of an app's request that the protocol needs.
package struct TransferRequest: Codable, Equatable, Sendable {
    package var method: String
    package var url: String
    package var headers: [HeaderField]
    /// The maximum number of seconds without a byte.
    package var idleTimeout: Double
    /// The maximum number of bytes of the complete file, also if the file arrives in several attempts.
    package var maximumBodyBytes: Int64?
    /// The limit in bytes per second.
    package var rateLimit: Int64?
    /// The hexadecimal digest that the complete file must have.
    package var expectedSHA256: String?
    /// The name of the file. `nil` if the app reads the result as a response.
    package var fileName: String?
    /// `true` if only a file is a result. A response that reports why no file is available is then a failure.
    var wantsOnlyFile: Bool { fileName != nil }
    /// The rate in bytes per second below which an attempt counts as stalled.
    package var leastRate: Int64 = 0
    /// `true` if a compressed response is decoded (RFC 9110, 8.4), also if it was not requested. `false` for the agent, because a
    /// small response may decode to any size.
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

    /// `true` if the download can be resumed. If the caller sets a range or a condition, the request is sent with exactly these
    /// headers.
    var isResumable: Bool {
        method == "GET"
            && !names(anyOf: ["range", "if-range", "if-match", "if-none-match", "if-modified-since", "if-unmodified-since"])
    }

    /// `true` if sending the request twice has the same effect as sending it once (RFC 9110 §9.2.2).
    var isIdempotent: Bool { Self.isIdempotent(method) }

    /// Returns whether a request is allowed to be sent again if it is unknown whether the server has processed the first request
    /// (RFC 9110, 9.2.2).
    package static func isIdempotent(_ method: String) -> Bool { method != "POST" && method != "PATCH" }

    func names(anyOf wanted: Set<String>) -> Bool {
        headers.contains { wanted.contains($0.name.lowercased()) }
    }
}

/// The destination of a response's body.
package enum BodyDisposition: Equatable, Sendable {
    /// Write at this offset. Do not only append, because this may be the offset of the last stored byte (see `PartialFile`).
    case append(at: Int64)
    /// Commit `DownloadMachine.partial`, truncate the file, and write the complete body.
    case rewrite
    /// Write nothing. The sink may also stop the attempt at once, with the same result.
    case discard
}

/// The next action after an attempt ended.
package enum DownloadCommand: Equatable, Sendable {
    /// The complete body is stored. The app has to handle the status, also if the status is 404.
    case finish(head: ResponseHead, resumedFrom: Int64?)
    /// Another attempt after this number of seconds, which continues after the stored bytes.
    case retry(after: Double, TransferTrouble)
    /// Another attempt after this number of seconds. The stored bytes are discarded first.
    case restart(after: Double, TransferTrouble)
    case fail(TransferTrouble)
}
