import Foundation

/// The order of an upload, with values that have other owners and can change between two attempts.
package struct UploadPlan: Equatable, Sendable {
    package var order: UploadOrder
    /// The folder: an http or https address.
    package var collectionURL: String
    /// For every request; those about content go only with the content.
    package var headers: [HeaderField]
    /// Seconds without a byte.
    package var idleTimeout: Double
    /// Bytes per second of all uploads to this address.
    package var rateLimit: Int64?
    /// The digest of the snapshot, in lower-case hex. `nil` if the digest is unknown.
    package var sha256: String?
    /// What was learned of the server before.
    package var knowledge: ServerKnowledge

    package init(
        order: UploadOrder, collectionURL: String, headers: [HeaderField] = [], idleTimeout: Double = 60, rateLimit: Int64? = nil,
        sha256: String? = nil, knowledge: ServerKnowledge = ServerKnowledge()
    ) {
        self.order = order
        self.collectionURL = collectionURL
        self.headers = headers
        self.idleTimeout = idleTimeout
        self.rateLimit = rateLimit
        self.sha256 = sha256
        self.knowledge = knowledge
    }

    /// What an address says where the file's name belongs.
    static let nameMark = "{name}"

    /// The mark as it is written, also where the address went through a URL.
    func withPlainNameMark() -> UploadPlan {
        var plan = self
        plan.collectionURL = collectionURL.replacing("%7Bname%7D", with: Self.nameMark)
        return plan
    }

    /// Where a place for the file is asked for: the name, where the address wants it, bears a mark of the content, so that no
    /// other photo of that name is replaced.
    var creationURL: String {
        collectionURL.replacing(Self.nameMark, with: CollectionAddress.encoded(markedName, keeping: ""))
    }

    /// The same for the same content, and nobody else's.
    private var markedName: String { RemoteName.marked(order.fileName, with: sha256 ?? order.token) }

    /// A name that no file has.
    var nobodysName: String { RemoteName.marked(order.fileName, with: String(order.token.reversed())) }

    /// One of the names that are tried in turn.
    func name(_ index: Int, isMarked: Bool = false) -> String {
        RemoteName.numbered(isMarked ? markedName : order.fileName, index)
    }

    /// Bytes of the longest answer that means anything: S3's list of a thousand parts.
    package static let maximumAnswer: Int64 = 1 << 20

    /// A caller's cannot take the place of what HTTP, or a protocol, says itself.
    private static let reserved = Set(UploadKind.allCases.flatMap(\.ownHeaders))
        .union(["content-length", "transfer-encoding", "expect", "range", "content-range", "accept-encoding"])

    /// - Parameter extra: the protocol's own headers, which a caller's cannot replace.
    func request(_ method: String, _ url: String, _ extra: [HeaderField] = []) -> WireRequest {
        // A server may keep uploads at another one; what opens this door is not for that.
        let isAtHome =
            if let home = URL(string: collectionURL.replacing(Self.nameMark, with: "")), let target = URL(string: url) {
                RedirectRule.origin(of: home) == RedirectRule.origin(of: target)
            } else {
                url == collectionURL
            }
        let own = headers.filter { field in
            let name = field.name.lowercased()
            return !Self.reserved.contains(name) && (method == "PUT" || !name.hasPrefix("content-"))
                && (isAtHome || RedirectRule.isHarmless(name))
        }
        return bare(method, url, own + extra)
    }

    /// An address at the same host that no file has.
    var addressOfNothing: String {
        guard var parts = URLComponents(string: collectionURL) else { return collectionURL }
        (parts.user, parts.password, parts.query, parts.fragment) = (nil, nil, nil, nil)
        parts.path = "/" + FormBody.plain(order.token)
        return parts.string ?? collectionURL
    }

    /// With these headers and no others: by itself it opens no door. An answer that drips ends with its head.
    func bare(_ method: String, _ url: String, _ headers: [HeaderField] = []) -> WireRequest {
        // No redirects: a PUT that is redirected may arrive as a GET, and a GET's 200 looks like success.
        var wire = WireRequest(
            method: method, url: url, headers: headers, idleTimeout: idleTimeout, maximumRedirects: 0,
            maximumBodyBytes: Self.maximumAnswer, rateLimit: rateLimit)
        wire.leastRate = min(WireRequest.leastUsefulRate, rateLimit.map { $0 / 2 } ?? .max)
        if rateLimit != nil { wire.rateGroup = collectionURL }
        wire.authorityFile = order.server?.authorityFile
        return wire
    }
}

/// The body that goes with a request.
package enum UploadContent: Equatable, Sendable {
    case none
    /// Nothing, and the server is told so (`Content-Length: 0`).
    case empty
    /// So many bytes of the snapshot, from there on.
    case snapshot(from: Int64, count: Int64)
    /// The whole snapshot, with something before and behind it.
    case wrapped(before: Data, after: Data)
    /// Nothing of the snapshot: a question or an order.
    case data(Data)
}

/// What is committed before each request, so that a new process continues. One shape for all protocols: each uses what it
/// needs.
package struct UploadMemory: Codable, Equatable, Sendable {
    /// The step that is about to be sent.
    package enum Step: String, Codable, Sendable {
        case chooseName, put, check, move
        /// A place on the server is made.
        case create
        /// How much of it the server has.
        case ask
        /// Bytes go to the place made before.
        case append
    }

    package var step: Step
    /// Which of the numbered names.
    package var nameIndex: Int
    /// Whether the temporary file is whole.
    package var isStored: Bool
    /// Address of the place that the server made.
    package var place: String?
    /// Places made so far, and lost.
    package var creations: Int?
    /// Which version of its protocol the place was made with.
    package var version: Int?
    /// Its name has a part of the digest in it.
    package var isMarked: Bool?
    /// The server answers every HEAD with 200.
    package var distrustsHead: Bool?
    /// The characters of the file's name that the server forbids.
    package var replaced: String?
    /// The rules that refused the file's name (`ForbiddenNameRules`).
    package var nameRules: Int?
    /// The file was sent to this name in an earlier step, and may be there.
    package var isDoubted: Bool?

    package init(
        step: Step, nameIndex: Int = 0, isStored: Bool = false, place: String? = nil, creations: Int? = nil, version: Int? = nil,
        isMarked: Bool = false, distrustsHead: Bool = false, replaced: String = "", nameRules: Int = 0, isDoubted: Bool = false
    ) {
        // Absent as in rows of versions that knew of no mark.
        self.isMarked = isMarked ? true : nil
        self.distrustsHead = distrustsHead ? true : nil
        self.replaced = replaced.isEmpty ? nil : replaced
        self.nameRules = nameRules == 0 ? nil : nameRules
        self.isDoubted = isDoubted ? true : nil
        self.step = step
        self.nameIndex = nameIndex
        self.isStored = isStored
        self.place = place
        self.creations = creations
        self.version = version
    }
}

extension UploadMemory {
    /// The file of a plain PUT was sent to its name, and the server did not confirm it for certain.
    package var mayBeThere: Bool { step == .put || step == .check || isDoubted == true }
}

/// What a server turned out to be able to do: kept per server, so that no upload asks again.
package struct ServerKnowledge: Codable, Equatable, Sendable {
    /// Of the IETF's resumable uploads.
    package var resumableVersion: Int?
    /// Bytes that one request may carry; more was refused (413).
    package var requestBytes: Int64?
    /// Where an S3 bucket lives, and where it was said to live when that was learned.
    package var region: String?
    package var configuredRegion: String?
    /// `true` if its S3 ignores or refuses `If-None-Match`, `false` if it was seen to heed it. `nil` if it was not tried.
    package var lacksConditions: Bool?
    /// The first number of Immich's version.
    package var immichVersion: Int?
    /// How a WebDAV server wants the new name of a MOVE. `nil`: as the address is configured.
    package var moveDestination: MoveDestination?

    package init() {}
}

/// The form of the `Destination` of a MOVE (RFC 4918 §10.3). A server behind a proxy that ends TLS knows itself by http, and refuses https.
package enum MoveDestination: String, Codable, Sendable {
    case overHTTP
    case pathAlone

    /// - Parameter form: `nil` for the address as it is configured.
    static func next(after form: MoveDestination?) -> MoveDestination? {
        switch form {
        case nil: .overHTTP
        case .overHTTP: .pathAlone
        case .pathAlone: nil
        }
    }

    /// - Parameter address: begins with `https://`.
    func of(_ address: String) -> String {
        let rest = address.dropFirst("https://".count)
        return switch self {
        case .overHTTP: "http://" + rest
        case .pathAlone: String(rest.drop { $0 != "/" })
        }
    }
}

/// What an upload wants next.
package enum UploadCommand: Equatable, Sendable {
    /// Commit `persistFirst`, then send. A crash between or after is what the saved state is for.
    case send(WireRequest, UploadContent, persistFirst: UploadMemory)
    /// Commit `persistFirst`, then send, and compare the response's body with this part of the snapshot (``WireEnd/comparison``).
    case compare(WireRequest, SnapshotPart, persistFirst: UploadMemory)
    case finished(remoteURL: String)
    case fail(TransferTrouble)
}

/// What follows an ended attempt.
package enum UploadOutcome: Equatable, Sendable {
    /// Ask `next()` at once.
    case `continue`
    /// Ask `next()` after so many seconds.
    case retry(after: Double, TransferTrouble)
    case finished(remoteURL: String)
    case fail(TransferTrouble)
}
