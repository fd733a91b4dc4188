/// What an app asked for, as far as the protocol is concerned.
package struct TransferRequest: Codable, Equatable, Sendable {
    package var method: String
    package var url: String
    package var headers: [HeaderField]
    /// Seconds without a byte.
    package var idleTimeout: Double
    /// Of the whole file, also when it arrives in several attempts.
    package var maximumBodyBytes: Int64?
    /// Bytes per second.
    package var rateLimit: Int64?
    /// Hex digest that the whole file must have.
    package var expectedSHA256: String?
    /// The name that the file is to have; `nil`: it is an answer, which the app looks at.
    package var fileName: String?
    /// Only a file will do: an answer that says why there is none is a failure, not a result.
    var wantsOnlyFile: Bool { fileName != nil }
    /// Bytes per second without which an attempt counts as stalled.
    package var leastRate: Int64 = 0
    /// A coded response is decoded (RFC 9110, 8.4), whatever was asked for. `false` for the agent: a small response may decode to any size.
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

    /// A caller that sets a range or a condition itself gets exactly that exchange, never a resumed one.
    var isResumable: Bool {
        method == "GET"
            && !names(anyOf: ["range", "if-range", "if-match", "if-none-match", "if-modified-since", "if-unmodified-since"])
    }

    /// Whether sending it twice equals sending it once (RFC 9110 §9.2.2).
    var isIdempotent: Bool { Self.isIdempotent(method) }

    /// Whether a request may be sent a second time when nobody knows whether the server carried out the first (RFC 9110, 9.2.2).
    package static func isIdempotent(_ method: String) -> Bool { method != "POST" && method != "PATCH" }

    func names(anyOf wanted: Set<String>) -> Bool {
        headers.contains { wanted.contains($0.name.lowercased()) }
    }
}

/// Where an answer's body goes.
package enum BodyDisposition: Equatable, Sendable {
    /// Seek to this offset and write there. It may be the last byte held (see `PartialFile`), so never just append.
    case append(at: Int64)
    /// Commit `DownloadMachine.partial`, truncate the file, take everything.
    case rewrite
    /// Write nothing. The sink may also stop the attempt at once: the outcome is the same.
    case discard
}

/// What follows an ended attempt.
package enum DownloadCommand: Equatable, Sendable {
    /// The whole body is held. The status is the app's business, also when it says 404.
    case finish(head: ResponseHead, resumedFrom: Int64?)
    /// Another attempt after so many seconds, with what is held.
    case retry(after: Double, TransferTrouble)
    /// Another attempt after so many seconds; the bytes held are discarded first.
    case restart(after: Double, TransferTrouble)
    case fail(TransferTrouble)
}
