import Foundation

/// An upload with tus 1.0.0 (tus.io/protocols/resumable-upload). POST creates an upload resource on the server (the place for the
/// file). HEAD requests the number of bytes in the place (the offset). PATCH sends bytes to the place.
///
/// Only the server's offset is used. After any failure, the offset is requested before a byte is sent. Bytes before the offset
/// are not sent again. `Upload-Expires` is not compared with the local clock, because the server responds with 404 or 410 for an
/// expired place.
///
/// Some servers store a file at the path of its place. For such servers, the address contains `{name}`. The name then contains a
/// part of the digest, so that the file does not replace another photo with the same name.
struct TusUpload: UploadProtocol {
    enum State {
        /// The upload requests the supported versions and the maximum size of a file by OPTIONS.
        case discovering
        /// The upload creates a place for the file by POST.
        case creating
        /// The upload requests the number of stored bytes by HEAD.
        case querying
        /// The upload sends bytes from this offset by PATCH.
        case appending(Int64)
        /// The upload checks the file by HEAD after the server reported that it has the complete file.
        case confirming
    }

    /// The possible sizes of a request in bytes. If a proxy refuses a request as too large (413), the next smaller size is tried.
    static let chunkSizes: [Int64] = [64 << 20, 16 << 20, 4 << 20, 1 << 20, 256 << 10]
    /// The maximum size of a file that is sent with its digest, if the server checks digests. If a request is interrupted, such a
    /// server discards the bytes of this request, because it cannot check an incomplete request. So after an interruption, at
    /// most this number of bytes is sent again.
    static let checkedBytes: Int64 = 4 << 20

    /// The size of a request for a server that keeps nothing of an interrupted request.
    static let losableBytes: Int64 = 1 << 20

    let plan: UploadPlan
    private(set) var state: State
    private var place: UploadPlace
    private var checksums: Set<String> = []
    /// `true` if the server supports the removal of an upload. `nil` if this is unknown because an earlier process sent the
    /// OPTIONS.
    private var canTerminate: Bool?
    /// The known facts about the server, for example the maximum size of a request.
    private(set) var knowledge: ServerKnowledge
    /// The interrupted request: its offset, and the number of bytes that were sent.
    private var lostAppend: (from: Int64, sent: Int64)?
    /// The last offset that the server reported.
    private(set) var storedBytes: Int64 = 0
    /// The evidence that the server has the file. The evidence is the server's offset, if the offset can be requested.
    private(set) var proof = UploadProof.length
    /// The number of consecutive times that the server had fewer bytes of the file than it had reported.
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

    /// The address for OPTIONS: the address of the upload, or the part before `{name}` if the address contains this mark.
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

    /// The name and the media type of the file, because some servers require both values.
    private var metadata: String {
        let pairs = [("filename", RemoteName.safe(plan.order.fileName)), ("filetype", plan.order.mediaType)]
        return pairs.map { "\($0) \(Data($1.utf8).base64EncodedString())" }.joined(separator: ",")
    }

    /// The digest of the complete file. The digest is already known, so the file is not read again.
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
                let known = ServerText.line(versions)
                return .fail(head, -1011, "The server supports the tus versions \(known), but not version 1.0.0.")
            }
            if let most = head["Tus-Max-Size"].flatMap({ Int64($0) }), most > 0, plan.order.byteCount > most {
                return .fail(head, -1103, "The file is too large for the server. The limit of the server is \(most) bytes.")
            }
            let extensions = Self.list(head["Tus-Extension"] ?? "")
            canTerminate = extensions.contains("termination")
            if extensions.contains("checksum") { checksums = Set(Self.list(head["Tus-Checksum-Algorithm"] ?? "")) }
            guard extensions.isEmpty || extensions.contains("creation") else {
                return .fail(head, -1011, "The server does not accept new files over tus (no \"creation\" extension).")
            }
        case 408, 429, 500, 502...599: return pauses.retry(head)
        // A proxy may block OPTIONS. The response to the next request shows whether the server can accept the file.
        default: break
        }
        state = .creating
        return .continue
    }

    private mutating func afterCreation(_ head: ResponseHead, _ pauses: Pauses) -> UploadOutcome {
        switch head.status {
        case 200..<300:
            guard let made = UploadPlace.address(of: head["Location"], madeAt: plan.creationURL) else {
                return .fail(head, -1011, "The server created the upload, but sent no Location header.")
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
            // The offset in the response is used. If this offset is missing or did not increase, the offset is requested.
            guard let now = head["Upload-Offset"].flatMap({ Int64($0) }), now > offset, now <= plan.order.byteCount else {
                state = .querying
                return pauses.retry(head, UploadPlace.unknownOffset)
            }
            return continueWork(from: now)
        case 409, 423, 460:
            state = .querying
            let why =
                switch head.status {
                case 409: "The server has stored more or fewer bytes of the file than expected."
                case 423: "The server is still busy with the file."
                default: "The server received damaged bytes."
                }
            return pauses.retry(head, why)
        case 413:
            let sent = min(plan.order.byteCount - offset, knowledge.requestBytes ?? .max)
            guard let smaller = Self.chunkSizes.first(where: { $0 < sent }) else {
                return .fail(head, -1103, "The file is too large for the server.")
            }
            // The offset is requested first, because the proxy may have forwarded a part of the bytes.
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

    /// Returns whether a tus server sent the response. Every response of a tus server contains this header.
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
    /// SeaweedFS deletes the session of a complete upload, and a hook of tusd can move the file. So if the address does not exist
    /// any more, the server may still have the file. Then only the response to the PATCH proves that the server has the file.
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
            // Some servers update the offset with a short delay, so a lower offset is accepted several times.
            lowerOffsets += 1
            if lowerOffsets >= Self.maximumLowerOffsets {
                lowerOffsets = 0
                storedBytes = offset
                state = .appending(offset)
            }
            return pauses.retry(
                head, "The server has \(offset) of \(plan.order.byteCount) bytes, although it reported the complete file.")
        // The place for the file does not exist any more, or a proxy blocks the request. The protocol permits 403, 404 and 410
        // for a place that does not exist.
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
