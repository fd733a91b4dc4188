import Foundation

/// A resumable upload of the IETF (draft-ietf-httpbis-resumable-upload). POST creates an upload resource on the server (the place
/// for the file). HEAD requests the number of bytes in the place (the offset). PATCH sends bytes to the place.
///
/// As with tus, only the server's offset is used. After any failure, the offset is requested before a byte is sent. The place is
/// created with an empty body (the draft's careful creation). Some proxies do not forward the response with status 104, which
/// contains the address of the place. The headers differ between versions of the draft. The newest version is tried first, and
/// the version that a server supports is stored.
struct ResumableUpload: UploadProtocol {
    enum State {
        /// The upload creates a place for the file by POST.
        case creating
        /// The upload requests the number of stored bytes by HEAD.
        case querying
        /// The upload sends bytes from this offset by PATCH.
        case appending(Int64)
    }

    /// The interop versions of the draft, from the newest to the oldest.
    static let versions = [8, 6, 5, 3]

    let plan: UploadPlan
    private(set) var state: State
    private(set) var knowledge: ServerKnowledge
    private var version: Int
    private var place: UploadPlace
    /// The address at which places are created, after the server's redirects.
    private var creationURL: String
    private var limits = ResumableLimits()
    private(set) var storedBytes: Int64 = 0

    init(plan: UploadPlan, resuming memory: UploadMemory? = nil) {
        self.plan = plan.withPlainNameMark()
        knowledge = plan.knowledge
        place = UploadPlace(memory)
        creationURL = self.plan.creationURL
        let remembered = memory?.version ?? plan.knowledge.resumableVersion ?? Self.versions[0]
        version = Self.versions.contains(remembered) ? remembered : Self.versions[0]
        state = memory?.place == nil ? .creating : .querying
    }

    /// The evidence that the server has the file: the number of bytes that the server reports.
    private(set) var proof = UploadProof.answer

    var stage: Int64 { storedBytes }

    var removal: WireRequest? { place.address.map { plan.request("DELETE", $0, [draft]) } }

    // MARK: Requests

    private var draft: HeaderField { HeaderField("Upload-Draft-Interop-Version", "\(version)") }

    private func completeness(_ isComplete: Bool) -> HeaderField {
        version == 3
            ? HeaderField("Upload-Incomplete", isComplete ? "?0" : "?1")
            : HeaderField("Upload-Complete", isComplete ? "?1" : "?0")
    }

    func next() -> UploadCommand {
        guard ["http", "https"].contains(URL(string: creationURL)?.scheme?.lowercased()) else {
            return .fail(TransferTrouble(.unsupportedURL))
        }
        switch state {
        case .creating:
            var headers = [
                draft, completeness(false), HeaderField("Content-Type", plan.order.mediaType),
                HeaderField("Content-Disposition", "attachment; filename*=UTF-8''\(encodedName)"),
            ]
            if version > 3 { headers.append(HeaderField("Upload-Length", "\(plan.order.byteCount)")) }
            // The server can use the digest to check whether the file arrived unchanged.
            if let digest = plan.sha256.flatMap(Hex.bytes) {
                headers.append(HeaderField("Repr-Digest", "sha-256=:\(digest.base64EncodedString()):"))
            }
            return .send(plan.request("POST", creationURL, headers), .empty, persistFirst: memory(.create))
        case .querying:
            return .send(plan.request("HEAD", place.address ?? "", [draft]), .none, persistFirst: memory(.ask))
        case .appending(let offset):
            let count = piece(from: offset)
            var headers = [
                draft, completeness(offset + count == plan.order.byteCount), HeaderField("Upload-Offset", "\(offset)"),
            ]
            // Draft versions before 6 do not define a media type.
            headers.append(HeaderField("Content-Type", version >= 6 ? "application/partial-upload" : "application/octet-stream"))
            let content: UploadContent = count == 0 ? .empty : .snapshot(from: offset, count: count)
            return .send(plan.request("PATCH", place.address ?? "", headers), content, persistFirst: memory(.append))
        }
    }

    private var encodedName: String { CollectionAddress.encoded(RemoteName.safe(plan.order.fileName), keeping: "") }

    private func piece(from offset: Int64) -> Int64 {
        min(plan.order.byteCount - offset, limits.maximumAppend ?? .max, knowledge.requestBytes ?? .max)
    }

    private func memory(_ step: UploadMemory.Step) -> UploadMemory {
        UploadMemory(step: step, place: place.address, creations: place.creations, version: version)
    }

    // MARK: Responses

    mutating func handleUncertainty() {
        switch state {
        case .appending: state = .querying
        // The final response was lost. If an earlier response with status 104 contained the address of the upload, the offset is
        // requested.
        case .creating: if place.address != nil { state = .querying }
        case .querying: break
        }
    }

    /// Stores the content of a 104 response immediately, because the final response may not arrive.
    mutating func received(_ resumption: ResponseHead) -> UploadMemory? {
        guard isOfThisVersion(resumption) else { return nil }
        limits.readLimits(resumption)
        if let offset = StructuredField.integer(resumption["Upload-Offset"]), offset > storedBytes, offset <= plan.order.byteCount
        {
            storedBytes = offset
        }
        guard case .creating = state, place.address == nil, let made = address(of: resumption["Location"]) else { return nil }
        place.made(at: made)
        return memory(.ask)
    }

    private func isOfThisVersion(_ head: ResponseHead) -> Bool {
        head["Upload-Draft-Interop-Version"].flatMap { StructuredField.integer($0) } == Int64(version)
    }

    /// Returns whether the upload is complete. The headers of old and new drafts are read, because servers mix these headers.
    private static func isComplete(_ head: ResponseHead) -> Bool? {
        StructuredField.boolean(head["Upload-Complete"]) ?? StructuredField.boolean(head["Upload-Incomplete"]).map { !$0 }
    }

    mutating func answered(_ head: ResponseHead, _ end: WireEnd, _ pauses: Pauses) -> UploadOutcome {
        if [307, 308].contains(head.status) { return followRedirect(head, pauses) }
        return switch state {
        case .creating: afterCreation(head, pauses)
        case .querying: afterQuestion(head, pauses)
        case .appending(let offset): afterAppend(head, offset, pauses)
        }
    }

    /// Follows a redirect with 307 or 308, because these statuses keep the method. With 301 and 302 the method may change.
    /// Credentials of the first server are not sent to another server (``UploadPlan/request(_:_:_:)``). A redirect from an
    /// encrypted to an unencrypted server is not followed.
    private mutating func followRedirect(_ head: ResponseHead, _ pauses: Pauses) -> UploadOutcome {
        if head.mayLeadToAPortal { return pauses.afterOther(head) }
        switch state {
        case .creating:
            guard let target = UploadPlace.address(of: head["Location"], madeAt: creationURL) else {
                return pauses.afterOther(head)
            }
            creationURL = target
        case .querying, .appending:
            guard let old = place.address, let target = UploadPlace.address(of: head["Location"], madeAt: old) else {
                return pauses.afterOther(head)
            }
            place.moved(to: target)
            // The offset is requested, because the server may have read a part of the body before it redirected.
            state = .querying
        }
        return .continue
    }

    private mutating func afterCreation(_ head: ResponseHead, _ pauses: Pauses) -> UploadOutcome {
        switch head.status {
        case 200..<300:
            let offset = StructuredField.integer(head["Upload-Offset"])
            guard Self.isComplete(head) != nil || offset != nil || place.address != nil,
                let made = address(of: head["Location"]) ?? place.address
            else { return stepDown(head) }
            limits.readLimits(head)
            if let most = limits.maximumSize, plan.order.byteCount > most {
                return .fail(head, -1103, "The file is too large for the server. The limit of the server is \(most) bytes.")
            }
            // An earlier response with status 104 may have contained the address of the upload.
            if place.address != made { place.made(at: made) }
            knowledge.resumableVersion = version
            storedBytes = 0
            state = .appending(0)
            return .continue
        case 404, 410: return .fail(head, -1100, "The server has no upload at this address (status \(head.status)).")
        case 400, 405, 415, 501:
            // The server is known to support this version, so this response may come from a program other than the server.
            let isDoubted = knowledge.resumableVersion == version && !isOfThisVersion(head)
            return isDoubted && place.asksAgain() ? pauses.retry(head) : stepDown(head)
        default: return pauses.afterOther(head)
        }
    }

    /// Selects another version of the draft. The selected version is the version in the server's response, or the next older
    /// version.
    private mutating func stepDown(_ head: ResponseHead) -> UploadOutcome {
        let named = head["Upload-Draft-Interop-Version"].flatMap { StructuredField.integer($0) }.map(Int.init)
        let older = Self.versions.filter { $0 < version }
        if let next = named.flatMap({ older.contains($0) ? $0 : nil }) ?? older.first {
            version = next
            place.forget()
            return .continue
        }
        let known = Self.versions.map(String.init).joined(separator: ", ")
        return .fail(head, -1011, "The server does not support any of the agent's versions of resumable uploads (\(known)).")
    }

    private mutating func afterQuestion(_ head: ResponseHead, _ pauses: Pauses) -> UploadOutcome {
        let offset = StructuredField.integer(head["Upload-Offset"])
        if let foreign = place.afterForeign(head, isServers: isOfThisVersion(head), pauses) { return foreign }
        switch head.status {
        case 200..<300:
            guard let offset, (0...plan.order.byteCount).contains(offset) else {
                return startOver(head, pauses, UploadPlace.unknownOffset)
            }
            place.isThere()
            if let length = StructuredField.integer(head["Upload-Length"]), length != plan.order.byteCount {
                return startOver(head, pauses, "The server expects a file of another length.")
            }
            limits.readLimits(head)
            storedBytes = offset
            if Self.isComplete(head) == true {
                guard offset == plan.order.byteCount else {
                    return startOver(head, pauses, Self.partIsComplete)
                }
                proof = .length
                return finish()
            }
            // This step is also necessary if all bytes are stored, because an empty last part completes the upload.
            state = .appending(offset)
            return .continue
        case 404, 410: return startOver(head, pauses, UploadPlace.thrownAway)
        default: return pauses.afterOther(head)
        }
    }

    private mutating func afterAppend(_ head: ResponseHead, _ offset: Int64, _ pauses: Pauses) -> UploadOutcome {
        let count = piece(from: offset)
        let isLast = offset + count == plan.order.byteCount
        switch head.status {
        // The status 409 is not a refusal of the file. This request may have arrived at the server twice. The first of these
        // requests then completed the upload, and the server responds to the second with 409.
        case 400... where Self.isComplete(head) == true && head.status != 409:
            // The server received the complete file and refuses it.
            return .fail(head, -1011, "The server received the complete file and refused it (status \(head.status)).")
        case 200..<300:
            if isLast, Self.isComplete(head) == true {
                let stored = StructuredField.integer(head["Upload-Offset"])
                if let stored, stored != plan.order.byteCount { return startOver(head, pauses, Self.partIsComplete) }
                proof = stored == nil ? .answer : .length
                return finish()
            }
            guard let now = StructuredField.integer(head["Upload-Offset"]), now > offset, now <= plan.order.byteCount else {
                // The response does not contain the offset, so the upload requests the offset.
                state = .querying
                return isLast ? pauses.retry(head, UploadPlace.unknownOffset) : .continue
            }
            storedBytes = now
            state = .appending(now)
            return .continue
        case 409:
            // The response may contain the offset, but the response to a separate request is more reliable.
            state = .querying
            return pauses.retry(head, "The server has stored more or fewer bytes of the file than expected.")
        case 413:
            let smaller = TusUpload.chunkSizes.first { $0 < count && $0 >= limits.minimumAppend ?? 0 }
            guard let smaller else { return .fail(head, -1103, "The file is too large for the server.") }
            knowledge.requestBytes = smaller
            state = .querying
            return .continue
        case 404, 410:
            state = .querying
            return isOfThisVersion(head)
                ? startOver(head, pauses, UploadPlace.thrownAway) : pauses.retry(head, UploadPlace.thrownAway)
        default:
            state = .querying
            return pauses.afterOther(head)
        }
    }

    /// Returns whether the refusal may be temporary. If the server has the complete file, its refusal is final.
    func mayPass(_ head: ResponseHead, _ end: WireEnd) -> Bool { head.hasNoMeaningForUploads && Self.isComplete(head) != true }

    private mutating func startOver(_ head: ResponseHead, _ pauses: Pauses, _ why: String) -> UploadOutcome {
        storedBytes = 0
        state = .creating
        return place.lose(head, pauses, why)
    }

    private static let partIsComplete = "The server accepted a part as the complete file."

    private func finish() -> UploadOutcome { .finished(remoteURL: PublicAddress.of(place.address ?? plan.collectionURL)) }

    private func address(of location: String?) -> String? { UploadPlace.address(of: location, madeAt: creationURL) }
}

/// The upload sizes that a server accepts (`Upload-Limit`).
struct ResumableLimits: Equatable {
    private(set) var maximumSize: Int64?
    private(set) var maximumAppend: Int64?
    private(set) var minimumAppend: Int64?

    mutating func readLimits(_ head: ResponseHead) {
        let said = StructuredField.integers(head["Upload-Limit"])
        maximumSize = said["max-size"] ?? maximumSize
        minimumAppend = said["min-append-size"] ?? minimumAppend
        // A maximum of 0 is ignored, because the file could not be sent with this maximum.
        maximumAppend = said["max-append-size"].flatMap { $0 > 0 ? $0 : nil } ?? maximumAppend
    }
}

/// Reads the kinds of structured fields (RFC 9651) that uploads use. Other kinds of fields are ignored.
enum StructuredField {
    static func integer(_ text: String?) -> Int64? {
        guard let item = item(text), item.count <= 16, item.drop(while: { $0 == "-" }).allSatisfy({ $0.isASCII && $0.isNumber })
        else { return nil }
        return Int64(item)
    }

    static func boolean(_ text: String?) -> Bool? {
        switch item(text) {
        case "?1": true
        case "?0": false
        default: nil
        }
    }

    /// Returns the members of a dictionary whose values are integers.
    static func integers(_ text: String?) -> [String: Int64] {
        var result: [String: Int64] = [:]
        for member in (text ?? "").split(separator: ",") {
            let parts = member.split(separator: "=", maxSplits: 1)
            guard parts.count == 2, let value = integer(String(parts[1])) else { continue }
            result[parts[0].trimmingCharacters(in: .whitespaces)] = value
        }
        return result
    }

    /// Returns the item without its parameters, because uploads do not use parameters.
    private static func item(_ text: String?) -> String? {
        text.map { $0.prefix { $0 != ";" }.trimmingCharacters(in: .whitespaces) }
    }
}
