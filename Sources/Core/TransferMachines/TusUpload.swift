import Foundation

/// An upload with tus 1.0.0 (tus.io/protocols/resumable-upload). POST creates a place for the file on the server. HEAD requests the
/// number of bytes in the place (the offset), and PATCH sends bytes to the place.
///
/// The rule: only the server's offset is used. After any failure the offset is requested before a byte is sent, and no byte before
/// the offset is sent again. `Upload-Expires` is not compared with the local clock, because the server responds with 404 or 410 for
/// an expired place.
///
/// An address that contains `{name}` is for servers that store a file at the path of its place. In this case the name contains a
/// part of the digest, so that no other photo of the same name is replaced.
struct TusUpload: UploadProtocol {
    enum State {
        /// OPTIONS, which returns the supported versions and the maximum size of a file.
        case discovering
        /// POST, which makes a place for the file.
        case creating
        /// HEAD, which returns the number of stored bytes.
        case querying
        /// PATCH from this offset.
        case appending(Int64)
        /// HEAD after the server reported that it has the complete file.
        case confirming
    }

    /// The sizes of one request that are tried, from the largest down, if a proxy refuses larger requests (413).
    static let chunkSizes: [Int64] = [64 << 20, 16 << 20, 4 << 20, 1 << 20, 256 << 10]
    /// The maximum size of a file that is sent with its digest, if the server checks the digest. After an interruption, at most
    /// this number of bytes is sent again, because a server cannot keep a part that it cannot check.
    static let checkedBytes: Int64 = 4 << 20

    /// The size of one request if the server loses an interrupted request completely.
    static let losableBytes: Int64 = 1 << 20

    let plan: UploadPlan
    private(set) var state: State
    private var place: UploadPlace
    private var checksums: Set<String> = []
    /// `true` if the server supports the removal of an upload. `nil` if this is unknown, because an earlier process sent the
    /// OPTIONS.
    private var canTerminate: Bool?
    /// The knowledge about the server, for example the maximum size of one request.
    private(set) var knowledge: ServerKnowledge
    /// The offset of an interrupted request, and the number of bytes that it sent.
    private var lostAppend: (from: Int64, sent: Int64)?
    /// The offset that the server reported last.
    private(set) var storedBytes: Int64 = 0
    /// The evidence that the server has the file: the server's offset, unless the offset cannot be requested.
    private(set) var proof = UploadProof.length
    /// The number of times in a row that the server had less of the file than it had reported.
    private var lowerOffsets = 0
    private static let maximumLowerOffsets = 4

    init(plan: UploadPlan, resuming memory: UploadMemory? = nil) {
        self.plan = plan.withPlainNameMark()
        knowledge = plan.knowledge
        place = UploadPlace(memory)
        state =
            switch memory?.step {
            case nil, .chooseName, .put, .move: .discovering
            case .create: .creating
            case .ask, .append: memory?.place == nil ? .creating : .querying
            case .check: memory?.place == nil ? .discovering : .confirming
            }
        if case .confirming = state { storedBytes = plan.order.byteCount }
    }

    var stage: Int64 { storedBytes }

    var removal: WireRequest? {
        guard canTerminate != false, let place = place.address else { return nil }
        return plan.request("DELETE", place, [Self.version])
    }

    private static let version = HeaderField("Tus-Resumable", "1.0.0")

    // MARK: Requests

    /// The address for OPTIONS: the upload's address, or the folder of the names.
    private var discoveryURL: String {
        guard let mark = plan.collectionURL.firstRange(of: UploadPlan.nameMark) else { return plan.collectionURL }
        return String(plan.collectionURL[..<mark.lowerBound])
    }

    func next() -> UploadCommand {
        guard ["http", "https"].contains(URL(string: plan.creationURL)?.scheme?.lowercased()) else {
            return .fail(TransferTrouble(.unsupportedURL))
        }
        switch state {
        case .discovering:
            return .send(plan.request("OPTIONS", discoveryURL), .none, persistFirst: memory(.chooseName))
        case .creating:
            let headers = [
                Self.version, HeaderField("Upload-Length", "\(plan.order.byteCount)"), HeaderField("Upload-Metadata", metadata),
            ]
            return .send(plan.request("POST", plan.creationURL, headers), .empty, persistFirst: memory(.create))
        case .querying:
            return .send(plan.request("HEAD", place.address ?? "", [Self.version]), .none, persistFirst: memory(.ask))
        case .confirming:
            return .send(plan.request("HEAD", place.address ?? "", [Self.version]), .none, persistFirst: memory(.check))
        case .appending(let offset):
            let count = min(plan.order.byteCount - offset, knowledge.requestBytes ?? .max)
            var headers = [
                Self.version, HeaderField("Content-Type", "application/offset+octet-stream"),
                HeaderField("Upload-Offset", "\(offset)"),
            ]
            if let checksum, count == plan.order.byteCount { headers.append(checksum) }
            return .send(
                plan.request("PATCH", place.address ?? "", headers), .snapshot(from: offset, count: count),
                persistFirst: memory(.append))
        }
    }

    private func memory(_ step: UploadMemory.Step) -> UploadMemory {
        UploadMemory(step: step, place: place.address, creations: place.creations)
    }

    /// The file's name and type, because some servers require both.
    private var metadata: String {
        let pairs = [("filename", RemoteName.safe(plan.order.fileName)), ("filetype", plan.order.mediaType)]
        return pairs.map { "\($0) \(Data($1.utf8).base64EncodedString())" }.joined(separator: ",")
    }

    /// The digest of the complete file, which is known without another read.
    private var checksum: HeaderField? {
        guard checksums.contains("sha256"), plan.order.byteCount <= Self.checkedBytes, let bytes = plan.sha256.flatMap(Hex.bytes)
        else { return nil }
        return HeaderField("Upload-Checksum", "sha256 \(bytes.base64EncodedString())")
    }

    // MARK: Responses

    mutating func handleUncertainty() {
        if case .appending = state { state = .querying }
    }

    mutating func lost(_ end: WireEnd) {
        if case .appending(let offset) = state { lostAppend = (offset, end.bytesSent) }
        handleUncertainty()
    }

    /// Limits the size of requests if the server kept nothing of an interrupted request.
    private mutating func learn(from offset: Int64) {
        defer { lostAppend = nil }
        guard let lost = lostAppend, offset <= lost.from, lost.sent > 2 * Self.losableBytes else { return }
        knowledge.requestBytes = min(knowledge.requestBytes ?? .max, Self.losableBytes)
    }

    mutating func answered(_ head: ResponseHead, _ end: WireEnd, _ pauses: Pauses) -> UploadOutcome {
        switch state {
        case .discovering: afterDiscovery(head, pauses)
        case .creating: afterCreation(head, pauses)
        case .querying: afterQuestion(head, pauses)
        case .appending(let offset): afterAppend(head, offset, pauses)
        case .confirming: afterConfirmation(head, pauses)
        }
    }

    private mutating func afterDiscovery(_ head: ResponseHead, _ pauses: Pauses) -> UploadOutcome {
        switch head.status {
        case 200..<300:
            if let versions = head["Tus-Version"], !Self.list(versions).contains("1.0.0") {
                return .fail(head, -1011, "The server supports tus \(ServerText.line(versions)), not 1.0.0.")
            }
            if let most = head["Tus-Max-Size"].flatMap({ Int64($0) }), most > 0, plan.order.byteCount > most {
                return .fail(head, -1103, "The file is too large for the server: the limit is \(most) bytes.")
            }
            let extensions = Self.list(head["Tus-Extension"] ?? "")
            canTerminate = extensions.contains("termination")
            if extensions.contains("checksum") { checksums = Set(Self.list(head["Tus-Checksum-Algorithm"] ?? "")) }
            guard extensions.isEmpty || extensions.contains("creation") else {
                return .fail(head, -1011, "The server does not accept new files over tus (no \"creation\" extension).")
            }
        case 408, 429, 500, 502...599: return pauses.retry(head)
        // A proxy may block OPTIONS. The next request shows the properties that matter.
        default: break
        }
        state = .creating
        return .continue
    }

    private mutating func afterCreation(_ head: ResponseHead, _ pauses: Pauses) -> UploadOutcome {
        switch head.status {
        case 200..<300:
            guard let made = UploadPlace.address(of: head["Location"], madeAt: plan.creationURL) else {
                return .fail(head, -1011, "The server created the upload without a Location header.")
            }
            place.made(at: made)
            storedBytes = 0
            return continueWork(from: 0)
        case 404, 410, 405, 501:
            return .fail(head, -1100, "The server has no tus upload at this address (status \(head.status)).")
        default: return otherwise(head, pauses)
        }
    }

    private mutating func afterQuestion(_ head: ResponseHead, _ pauses: Pauses) -> UploadOutcome {
        let offset = head["Upload-Offset"].flatMap { Int64($0) }
        if let foreign = place.afterForeign(head, isServers: Self.isServers(head), pauses) { return foreign }
        switch head.status {
        case 200..<300:
            guard let offset, (0...plan.order.byteCount).contains(offset) else {
                return startOver(head, pauses, UploadPlace.unknownOffset)
            }
            place.isThere()
            if let length = head["Upload-Length"], Int64(length) != plan.order.byteCount {
                return startOver(head, pauses, "The server expects a file of another length.")
            }
            learn(from: offset)
            storedBytes = offset
            if offset == plan.order.byteCount { return finish(.length) }
            state = .appending(offset)
            return .continue
        case 403, 404, 410: return startOver(head, pauses, UploadPlace.thrownAway)
        default: return otherwise(head, pauses)
        }
    }

    private mutating func afterAppend(_ head: ResponseHead, _ offset: Int64, _ pauses: Pauses) -> UploadOutcome {
        switch head.status {
        case 200..<300:
            // The offset in the response is used. If the offset is missing or did not advance, the offset is requested.
            guard let now = head["Upload-Offset"].flatMap({ Int64($0) }), now > offset, now <= plan.order.byteCount else {
                state = .querying
                return pauses.retry(head, UploadPlace.unknownOffset)
            }
            return continueWork(from: now)
        case 409, 423, 460:
            state = .querying
            let why =
                switch head.status {
                case 409: "The server has a different part of the file than expected."
                case 423: "The server is still busy with the file."
                default: "The server received damaged bytes."
                }
            return pauses.retry(head, why)
        case 413:
            let sent = min(plan.order.byteCount - offset, knowledge.requestBytes ?? .max)
            guard let smaller = Self.chunkSizes.first(where: { $0 < sent }) else {
                return .fail(head, -1103, "The file is too large for the server.")
            }
            // The offset is requested first, because a proxy may have forwarded a part.
            knowledge.requestBytes = smaller
            state = .querying
            return .continue
        case 403, 404, 410:
            state = .querying
            return Self.isServers(head)
                ? startOver(head, pauses, UploadPlace.thrownAway) : pauses.retry(head, UploadPlace.thrownAway)
        default:
            state = .querying
            return otherwise(head, pauses)
        }
    }

    /// Returns whether a tus server sent the response. Every response of a tus server has this header.
    private static func isServers(_ head: ResponseHead) -> Bool { head["Tus-Resumable"] != nil }

    private func otherwise(_ head: ResponseHead, _ pauses: Pauses) -> UploadOutcome {
        guard head.status == 412 else { return pauses.afterOther(head) }
        let versions = head["Tus-Version"].map { " (the server supports \(ServerText.line($0)))" } ?? ""
        return .fail(head, -1011, "The server does not support tus 1.0.0\(versions).")
    }

    private mutating func continueWork(from offset: Int64) -> UploadOutcome {
        storedBytes = offset
        state = offset == plan.order.byteCount ? .confirming : .appending(offset)
        return .continue
    }

    /// Handles the check after the server reported that it has the complete file.
    ///
    /// SeaweedFS deletes the session of a complete upload, and a hook of tusd can move the file. A missing address therefore does
    /// not mean that the file is lost. The proof is then only the response to the PATCH.
    private mutating func afterConfirmation(_ head: ResponseHead, _ pauses: Pauses) -> UploadOutcome {
        switch head.status {
        case 200..<300 where head.mayBeOfAPortal && pauses.policy.suspicionDelay != nil:
            return pauses.page(head)
        case 200..<300:
            if let length = head["Upload-Length"], Int64(length) != plan.order.byteCount {
                return startOver(head, pauses, "The server expects a file of another length.")
            }
            guard let offset = head["Upload-Offset"].flatMap({ Int64($0) }), (0...plan.order.byteCount).contains(offset) else {
                return finish(.answer)
            }
            if offset == plan.order.byteCount { return finish(.length) }
            // A lower offset is accepted several times, because some servers update the offset a moment late.
            lowerOffsets += 1
            if lowerOffsets >= Self.maximumLowerOffsets {
                lowerOffsets = 0
                storedBytes = offset
                state = .appending(offset)
            }
            return pauses.retry(
                head, "The server has \(offset) of \(plan.order.byteCount) bytes, although it reported the complete file.")
        // The place is gone (tus allows 403, 404 and 410 in this case), or a proxy blocks the request.
        case 400, 403, 404, 405, 406, 410, 501: return finish(.answer)
        default: return otherwise(head, pauses)
        }
    }

    private mutating func startOver(_ head: ResponseHead, _ pauses: Pauses, _ why: String) -> UploadOutcome {
        storedBytes = 0
        state = .creating
        return place.lose(head, pauses, why)
    }

    private mutating func finish(_ proof: UploadProof) -> UploadOutcome {
        self.proof = proof
        return .finished(remoteURL: PublicAddress.of(place.address ?? plan.collectionURL))
    }

    private static func list(_ text: String) -> [String] {
        text.split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces).lowercased() }
    }
}
