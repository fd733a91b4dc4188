/// How a server takes files.
public enum UploadKind: String, Codable, Sendable, CaseIterable {
    /// PUT under a temporary name, then MOVE: a half file never has the final name.
    case webdav
    /// One PUT to the final name, for servers without MOVE.
    case put
}

/// What is to be uploaded, and where to.
public struct UploadPlan: Codable, Equatable, Sendable {
    public var kind: UploadKind
    /// The folder: an http or https address.
    public var collectionURL: String
    /// The wished name; if it is taken, `name-1.jpg` and so on.
    public var fileName: String
    /// Bytes of the snapshot, which never changes.
    public var byteCount: Int64
    /// Unique to this transfer (letters and digits are used): names the temporary file.
    public var token: String
    /// For every request; those about content go only with the content.
    public var headers: [HeaderField]
    /// Seconds without a byte.
    public var idleTimeout: Double
    /// Bytes per second.
    public var rateLimit: Int64?

    public init(
        kind: UploadKind, collectionURL: String, fileName: String, byteCount: Int64, token: String,
        headers: [HeaderField] = [], idleTimeout: Double = 60, rateLimit: Int64? = nil
    ) {
        self.kind = kind
        self.collectionURL = collectionURL
        self.fileName = fileName
        self.byteCount = byteCount
        self.token = token
        self.headers = headers
        self.idleTimeout = idleTimeout
        self.rateLimit = rateLimit
    }

    private static let reserved: Set<String> = [
        "content-length", "transfer-encoding", "expect", "destination", "overwrite", "if-none-match", "if-match",
        "range", "content-range", "depth",
    ]

    /// - Parameter extra: the protocol's own headers, which a caller's cannot replace.
    func request(_ method: String, _ url: String, _ extra: [HeaderField] = []) -> WireRequest {
        let own = headers.filter { field in
            let name = field.name.lowercased()
            return !Self.reserved.contains(name) && (method == "PUT" || !name.hasPrefix("content-"))
        }
        // No redirects: a PUT that is redirected may arrive as a GET, and a GET's 200 looks like success.
        return WireRequest(
            method: method, url: url, headers: own + extra, idleTimeout: idleTimeout, maximumRedirects: 0,
            rateLimit: rateLimit)
    }
}

/// What an upload wants next.
public enum UploadCommand: Equatable, Sendable {
    /// Commit `persistFirst`, then send. A crash between or after is what the saved state is for.
    case send(WireRequest, withBody: Bool, persistFirst: UploadMachine.Saved)
    case finished(remoteURL: String)
    case fail(TransferTrouble)
}

/// What follows an ended attempt.
public enum UploadOutcome: Equatable, Sendable {
    /// Ask `next()` at once.
    case `continue`
    /// Ask `next()` after so many seconds.
    case retry(after: Double, TransferTrouble)
    case finished(remoteURL: String)
    case fail(TransferTrouble)
}
