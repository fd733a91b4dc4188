import Foundation

/// The order of an upload, together with the values that can change between two attempts.
package struct UploadPlan: Equatable, Sendable {
    package var order: UploadOrder
    /// The http or https address of the folder.
    package var collectionURL: String
    /// The headers of every request. Headers that describe the content are sent only with the content.
    package var headers: [HeaderField]
    /// The number of seconds without a sent or received byte after which an attempt fails.
    package var idleTimeout: Double
    /// The limit in bytes per second for all uploads to this address.
    package var rateLimit: Int64?
    /// The SHA-256 of the snapshot, in lower-case hexadecimal. `nil` if the digest is unknown.
    package var sha256: String?
    /// The facts about the server that earlier uploads recorded.
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

    /// The mark in an address. The name of the file replaces this mark.
    static let nameMark = "{name}"

    /// Returns the plan with the plain mark in its address. The app's URL may contain the mark in percent-encoded form.
    func withPlainNameMark() -> UploadPlan {
        var plan = self
        plan.collectionURL = collectionURL.replacing("%7Bname%7D", with: Self.nameMark)
        return plan
    }

    /// The address at which a place for the file is requested. If the address contains the name, this name contains a mark that
    /// differs for other content. So the file does not replace another photo with the same name.
    var creationURL: String {
        collectionURL.replacing(Self.nameMark, with: CollectionAddress.encoded(markedName, keeping: ""))
    }

    /// The file's name with a mark, which is equal for equal content and differs for other content.
    private var markedName: String { RemoteName.marked(order.fileName, with: sha256 ?? order.token) }

    /// A name that no file on the server has.
    var nobodysName: String { RemoteName.marked(order.fileName, with: String(order.token.reversed())) }

    /// Returns the name with this index. The names are tried one after the other.
    func name(_ index: Int, isMarked: Bool = false) -> String {
        RemoteName.numbered(isMarked ? markedName : order.fileName, index)
    }

    /// The maximum size of a response in bytes. A list of a thousand parts from S3 is smaller.
    package static let maximumAnswer: Int64 = 1 << 20

    /// The headers of HTTP and of the protocols. A caller's headers cannot replace these headers.
    private static let reserved = Set(UploadKind.allCases.flatMap(\.ownHeaders))
        .union(["content-length", "transfer-encoding", "expect", "range", "content-range", "accept-encoding"])

    /// - Parameter extra: The headers of the protocol. A caller's headers cannot replace these headers.
    func request(_ method: String, _ url: String, _ extra: [HeaderField] = []) -> WireRequest {
        // A server may store uploads on another host. The credentials for the configured host are not sent to this other host.
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

    /// Returns a request that contains only these headers, and no credentials. If the body of the response is too slow, the
    /// attempt ends with the headers only.
    func bare(_ method: String, _ url: String, _ headers: [HeaderField] = []) -> WireRequest {
        // Redirects are not followed, because a redirected PUT may arrive as a GET. The response 200 to a GET would look like a
        // success.
        var wire = WireRequest(
            method: method, url: url, headers: headers, idleTimeout: idleTimeout, maximumRedirects: 0,
            maximumBodyBytes: Self.maximumAnswer, rateLimit: rateLimit)
        wire.leastRate = min(WireRequest.leastUsefulRate, rateLimit.map { $0 / 2 } ?? .max)
        if rateLimit != nil { wire.rateGroup = order.server?.name ?? collectionURL }
        wire.authorityFile = order.server?.authorityFile
        wire.requiredLines = order.server?.requiredLines ?? []
        return wire
    }
}

/// The body of a request.
package enum UploadContent: Equatable, Sendable {
    case none
    /// An empty body, for which the request contains `Content-Length: 0`.
    case empty
    /// A number of bytes of the snapshot, from an offset.
    case snapshot(from: Int64, count: Int64)
    /// The complete snapshot, with data before and after it.
    case wrapped(before: Data, after: Data)
    /// Data that is not a part of the snapshot, for a query or a command.
    case data(Data)
}

/// The state that is committed before each request, so that a new process can continue the upload. All protocols use this type.
/// Each protocol uses only the fields that it needs.
package struct UploadMemory: Codable, Equatable, Sendable {
    /// The step of the upload. The request of this step is sent next.
    package enum Step: String, Codable, Sendable {
        case chooseName, put, check, move
        /// The next request creates a place for the file on the server.
        case create
        /// The next request asks for the number of bytes that the server has stored.
        case ask
        /// The next request sends bytes to the place for the file.
        case append
    }

    package var step: Step
    /// The number in the file's name, for example 1 in `name-1.jpg`.
    package var nameIndex: Int
    /// `true` if the temporary file is complete.
    package var isStored: Bool
    /// The address of the place for the file on the server.
    package var place: String?
    /// The number of places that were created, including lost places.
    package var creations: Int?
    /// The version of the protocol by which the place for the file was created.
    package var version: Int?
    /// `true` if the name contains a part of the digest.
    package var isMarked: Bool?
    /// `true` if the server responds to every HEAD with 200.
    package var distrustsHead: Bool?
    /// The characters of the file's name that the server does not allow.
    package var replaced: String?
    /// The rules by which the server refused the file's name (`ForbiddenNameRules`).
    package var nameRules: Int?
    /// `true` if the file was sent to this name in an earlier step and may exist under this name.
    package var isDoubted: Bool?

    package init(
        step: Step, nameIndex: Int = 0, isStored: Bool = false, place: String? = nil, creations: Int? = nil, version: Int? = nil,
        isMarked: Bool = false, distrustsHead: Bool = false, replaced: String = "", nameRules: Int = 0, isDoubted: Bool = false
    ) {
        // The value `false` is not stored. The field is also missing in rows of earlier versions, which did not have this field.
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
    /// `true` if the file was sent to its name by PUT and the server may have the file without a confirmation.
    package var mayBeThere: Bool { step == .put || step == .check || isDoubted == true }
}

/// The capabilities of a server, as earlier responses showed. The ledger stores the capabilities of each server, so that later
/// uploads do not test them again.
package struct ServerKnowledge: Codable, Equatable, Sendable {
    /// The version of the IETF's resumable uploads that the server supports.
    package var resumableVersion: Int?
    /// The maximum number of bytes of one request. The server refused larger requests with status 413.
    package var requestBytes: Int64?
    /// The region of an S3 bucket. `configuredRegion` is the region in the configuration at the time when the region of the
    /// bucket was found.
    package var region: String?
    package var configuredRegion: String?
    /// `true` if the S3 server ignores or refuses `If-None-Match`, and `false` if it supports this condition. `nil` if this was
    /// not tested.
    package var lacksConditions: Bool?
    /// The major version of Immich on the server. `nil` if the version is not known.
    package var immichVersion: Int?
    /// The form in which a WebDAV server accepts the new name of a MOVE. `nil` if the server accepts the configured address.
    package var moveDestination: MoveDestination?

    package init() {}
}

/// The form of the `Destination` header of a MOVE (RFC 4918 §10.3). If a proxy in front of the server handles TLS, the server
/// uses http for its own address and refuses https.
package enum MoveDestination: String, Codable, Sendable {
    case overHTTP
    case pathAlone

    /// - Parameter form: The last form, or `nil` for the configured address.
    static func next(after form: MoveDestination?) -> MoveDestination? {
        switch form {
        case nil: .overHTTP
        case .overHTTP: .pathAlone
        case .pathAlone: nil
        }
    }

    /// - Parameter address: An address that begins with `https://`.
    func of(_ address: String) -> String {
        let rest = address.dropFirst("https://".count)
        return switch self {
        case .overHTTP: "http://" + rest
        case .pathAlone: String(rest.drop { $0 != "/" })
        }
    }
}

/// The next action of an upload.
package enum UploadCommand: Equatable, Sendable {
    /// Commit `persistFirst`, and then send the request. After a crash, the upload continues with the committed state.
    case send(WireRequest, UploadContent, persistFirst: UploadMemory)
    /// Commit `persistFirst`, and then send the request. Compare the body of the response with this part of the snapshot
    /// (``WireEnd/comparison``).
    case compare(WireRequest, SnapshotPart, persistFirst: UploadMemory)
    case finished(remoteURL: String)
    case fail(TransferTrouble)
}

/// The next action after an attempt ended.
package enum UploadOutcome: Equatable, Sendable {
    /// Call `next()` immediately.
    case `continue`
    /// Call `next()` after this number of seconds.
    case retry(after: Double, TransferTrouble)
    case finished(remoteURL: String)
    case fail(TransferTrouble)
}
