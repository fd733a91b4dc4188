import Foundation

/// An upload to S3 or a compatible server. A file up to 5 MiB is sent by a single PUT. A larger file is sent in parts.
///
/// An object is never overwritten. The upload sends a HEAD first, and its PUT contains `If-None-Match: *`. If HEAD is forbidden
/// or the bucket does not support conditions, the key contains a part of the content's digest. The metadata of each object
/// contains the digest of its content, so that the upload recognizes its object after a lost response. Parts that the server
/// lists are not sent again.
struct S3Upload: UploadProtocol {
    enum State {
        /// The upload sends HEAD for the key. The response shows whether the key is free, belongs to this upload's object, or
        /// belongs to another object. `isTaken` is `true` if the server reported that an object exists.
        case querying(Int, isTaken: Bool)
        /// The upload sends HEAD and then GET for a key that no object has, because the server reported many keys as taken.
        case doubting(Int)
        /// The upload tests whether the bucket supports conditional requests.
        case probing(Int, ProbeStep)
        /// The upload sends the complete file by PUT.
        case sendingWhole(Int)
        /// The upload begins an upload in parts by POST `?uploads`.
        case creating(Int)
        /// The upload requests the list of the stored parts by GET, page by page.
        case listing(Int, marker: Int)
        /// The upload sends a part of the file by PUT.
        case sendingPart(Int, Int)
        /// The upload sends HEAD for the key once more, because the server does not support conditional requests.
        case queryingAgain(Int)
        /// The upload sends the list of the parts by POST, which completes the object.
        case completing(Int)
        /// The upload removes the stored parts by DELETE, because the key is taken.
        case aborting(Int)
        /// The upload sends HEAD for the object that it made.
        case confirming(Int)
        /// The upload reads by GET an object with the right key and length, because the metadata of the object contains no
        /// digest.
        case readingBack(Int, ReadBack, isTaken: Bool)
    }

    /// Amazon's minimum size of a part, in bytes. Up to this size, a file is sent by a single PUT.
    static let partBytes: Int64 = 5 << 20

    let plan: UploadPlan
    var access: S3Access
    let address: CollectionAddress?
    let parts: UploadParts
    var state: State
    /// The server's identifier of the upload in parts.
    var uploadID: String?
    var creations: Int
    /// The entity tags of the stored parts, by the numbers of the parts.
    var tags: [Int: String] = [:]
    var knowledge: ServerKnowledge
    var clockSkew: Double = 0
    /// The number of times that the upload continued in another region, because the bucket was not in the earlier region.
    var moves = 0
    private(set) var proof = UploadProof.answer
    /// `true` if another object may have the file's name as its key, and the bucket may ignore a condition. The name is then
    /// marked: it contains a part of the content's digest.
    private(set) var isMarked: Bool
    /// `true` if the test of the bucket ran in this upload, with or without a result.
    var hasProbed = false
    var search: NameSearch
    /// Records whether an existing object with this key may be the object of this upload.
    var doubt: NameDoubt
    /// `true` if the next check of the key uses GET, because the server refused HEAD.
    var checksByGet = false
    /// The step of the upload that an earlier agent process began.
    private let begun: UploadMemory.Step?

    init(plan: UploadPlan, resuming memory: UploadMemory? = nil) {
        self.plan = plan
        knowledge = plan.knowledge
        var access = plan.order.s3 ?? S3Access(bucket: nil, region: "us-east-1", accessKey: "", secretKey: "")
        // A region from an earlier redirect is used until the configured region changes.
        if knowledge.configuredRegion == access.region { access.region = knowledge.region ?? access.region }
        self.access = access
        address = CollectionAddress(plan.collectionURL).map { $0.inBucket(access.bucket) }
        parts = UploadParts(byteCount: plan.order.byteCount, smallest: Self.partBytes)
        uploadID = memory?.place
        creations = memory?.creations ?? 0
        begun = memory?.step
        isMarked = memory?.isMarked ?? false
        search = NameSearch(resuming: memory)
        doubt = NameDoubt(resuming: memory, sentIn: [.put, .move, .check])
        let name = memory?.nameIndex ?? 0
        // If an earlier request received no response, the list of the parts or the object shows the state of the server.
        state = uploadID == nil ? .querying(name, isTaken: false) : .listing(name, marker: 0)
    }

    // MARK: Requests

    var isInParts: Bool { plan.order.byteCount > Self.partBytes }

    func key(_ index: Int) -> String { address?.file(name(index)) ?? plan.collectionURL }

    private func name(_ index: Int) -> String { plan.name(index, isMarked: isMarked) }

    func next() -> UploadCommand {
        guard let address else { return .fail(TransferTrouble(.unsupportedURL)) }
        switch state {
        case .doubting(let index):
            return send(search.methodForFreeName, address.file(plan.nobodysName), remembering: .chooseName, index)
        case .querying(let index, _) where checksByGet:
            return send("GET", key(index), [HeaderField("Range", "bytes=0-0")], remembering: .chooseName, index)
        case .querying(let index, _):
            return send("HEAD", key(index), remembering: .chooseName, index)
        case .confirming(let index):
            return send("HEAD", key(index), remembering: .check, index)
        case .queryingAgain(let index):
            return send("HEAD", key(index), remembering: .move, index)
        case .probing(let index, .create), .probing(let index, .again):
            return send("PUT", probeAddress, [HeaderField("If-None-Match", "*")], .empty, remembering: .chooseName, index)
        case .probing(let index, .remove):
            return send("DELETE", probeAddress, remembering: .chooseName, index)
        case .sendingWhole(let index):
            var headers = object + condition
            if let digest = plan.sha256.flatMap(Hex.bytes) {
                headers.append(HeaderField("x-amz-checksum-sha256", digest.base64EncodedString()))
            }
            return send(
                "PUT", key(index), headers, .snapshot(from: 0, count: plan.order.byteCount), payload: plan.sha256,
                remembering: .put,
                index)
        case .creating(let index):
            return send("POST", key(index) + "?uploads=", object, .empty, remembering: .create, index)
        case .listing(let index, let marker):
            let place = marker == 0 ? "" : "&part-number-marker=\(marker)"
            return send("GET", key(index) + query + place, remembering: .ask, index)
        case .sendingPart(let index, let number):
            return send(
                "PUT", key(index) + "?partNumber=\(number)&" + query.dropFirst(), [], parts.content(of: number),
                remembering: .append, index)
        case .completing(let index):
            return send("POST", key(index) + query, condition, .data(list), remembering: .move, index)
        case .aborting(let index):
            return send("DELETE", key(index) + query, remembering: .chooseName, index)
        case .readingBack(let index, let question, _):
            let request = signed(plan.request("GET", key(index), question.headers))
            return question.command(request, persistFirst: memory(.chooseName, index))
        }
    }

    private var query: String { "?uploadId=" + CollectionAddress.encoded(uploadID ?? "", keeping: "") }

    /// The headers that describe the object.
    private var object: [HeaderField] {
        let digest = plan.sha256.map { [HeaderField("x-amz-meta-sha256", $0)] } ?? []
        return [HeaderField("Content-Type", plan.order.mediaType)] + digest
    }

    private var condition: [HeaderField] {
        isMarked || knowledge.lacksConditions == true ? [] : [HeaderField("If-None-Match", "*")]
    }

    private var list: Data {
        let lines = tags.sorted { $0.key < $1.key }.map { number, tag in
            "<Part><PartNumber>\(number)</PartNumber><ETag>\(Self.escaped(tag))</ETag></Part>"
        }
        return Data("<CompleteMultipartUpload>\(lines.joined())</CompleteMultipartUpload>".utf8)
    }

    /// Returns the entity tag with XML escapes, because the tag is a text from the server.
    private static func escaped(_ text: String) -> String {
        text.replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing(">", with: "&gt;")
    }

    private func send(
        _ method: String, _ url: String, _ headers: [HeaderField] = [], _ content: UploadContent = .none,
        payload: String? = nil, remembering step: UploadMemory.Step, _ index: Int
    ) -> UploadCommand {
        .send(signed(plan.request(method, url, headers), payload: payload), content, persistFirst: memory(step, index))
    }

    private func memory(_ step: UploadMemory.Step, _ index: Int) -> UploadMemory {
        UploadMemory(
            step: step, nameIndex: index, place: uploadID, creations: creations, isMarked: isMarked,
            distrustsHead: search.distrustsHead, isDoubted: doubt.isOpen)
    }

    private func signed(_ request: WireRequest, payload: String? = nil) -> WireRequest {
        var request = request
        request.headers.removeAll { ["authorization", "content-length"].contains($0.name.lowercased()) }
        request.signing = S3Signing(access, payloadSHA256: payload, clockSkew: clockSkew)
        return request
    }

    // MARK: This machine's other uploads

    private func publicName(_ index: Int) -> String {
        address?.publicFile(name(index)) ?? plan.collectionURL
    }

    var openName: String? {
        switch begun {
        case .put, .create, .ask, .append, .move, .check: publicName(nameIndex)
        case .chooseName, nil: doubt.isOpen ? publicName(nameIndex) : nil
        }
    }

    mutating func setOtherNames(taken: Set<String>, stored: Set<String>) {
        switch state {
        case .querying(let index, _), .sendingWhole(let index), .creating(let index):
            let free = RemoteName.firstIndex(from: index) { !taken.contains(publicName($0)) }
            if free != index { state = .querying(free, isTaken: false) }
        case .doubting, .probing, .listing, .sendingPart, .queryingAgain, .completing, .aborting, .confirming, .readingBack: break
        }
    }

    // MARK: Progress

    var storedBytes: Int64 {
        if case .confirming = state { return plan.order.byteCount }
        return parts.bytes(of: tags.keys)
    }

    var stage: Int64 { storedBytes }

    var nameIndex: Int {
        switch state {
        case .querying(let index, _), .doubting(let index), .probing(let index, _), .sendingWhole(let index),
            .creating(let index),
            .listing(let index, _), .sendingPart(let index, _), .queryingAgain(let index), .completing(let index),
            .aborting(let index), .confirming(let index), .readingBack(let index, _, _):
            index
        }
    }

    /// The request that removes the stored parts. The server stores the parts of an incomplete upload, at the user's expense,
    /// until they are removed.
    var removal: WireRequest? {
        if case .probing = state { return signed(plan.request("DELETE", probeAddress)) }
        guard uploadID != nil else { return nil }
        switch state {
        case .listing(let index, _), .sendingPart(let index, _), .queryingAgain(let index), .completing(let index),
            .aborting(let index):
            return signed(plan.request("DELETE", key(index) + query))
        case .querying, .doubting, .probing, .sendingWhole, .creating, .confirming, .readingBack: return nil
        }
    }

    // MARK: Steps

    mutating func rememberRegion() {
        guard let configured = plan.order.s3?.region, access.region != configured else { return }
        (knowledge.region, knowledge.configuredRegion) = (access.region, configured)
    }

    /// Begins the upload under a marked name, which contains a part of the digest. The upload does not check for an existing
    /// object.
    mutating func beginWithMarkedName() -> UploadOutcome {
        if !isMarked { doubt.close() }
        isMarked = true
        return begin(0)
    }

    mutating func begin(_ index: Int) -> UploadOutcome {
        // An earlier upload may have used a marked name, if the bucket supported no conditions.
        if plan.order.onlyChecks == true, !isMarked {
            isMarked = true
            state = .querying(0, isTaken: false)
            return .continue
        }
        if !isMarked, knowledge.lacksConditions == true { return beginWithMarkedName() }
        if !isMarked, knowledge.lacksConditions == nil, !hasProbed {
            state = .probing(index, .create)
            return .continue
        }
        state = isInParts ? .creating(index) : .sendingWhole(index)
        return .continue
    }

    /// Continues with the next part that the server does not have, or completes the object if the server has all parts.
    mutating func continueWork(_ index: Int) -> UploadOutcome {
        let missing = (1...parts.count).first { tags[$0] == nil }
        let last: State = knowledge.lacksConditions == true ? .queryingAgain(index) : .completing(index)
        state = missing.map { .sendingPart(index, $0) } ?? last
        return .continue
    }

    mutating func tryName(after index: Int) -> UploadOutcome {
        guard index < RemoteName.maximumIndex else { return .everyNameIsTaken }
        doubt.close()
        state = .querying(index + 1, isTaken: false)
        return .continue
    }

    mutating func finish(_ index: Int, _ proof: UploadProof) -> UploadOutcome {
        self.proof = proof
        return .finished(remoteURL: publicName(index))
    }

    mutating func recordEarlyResponse() {
        handleUncertainty()
        doubt.recordEarlyResponse()
    }

    mutating func handleUncertainty() {
        switch state {
        case .sendingWhole(let index):
            doubt.open()
            state = .querying(index, isTaken: false)
        case .sendingPart(let index, _), .completing(let index):
            if case .completing = state { doubt.open() }
            tags = [:]
            state = .listing(index, marker: 0)
        case .querying, .doubting, .probing, .creating, .listing, .queryingAgain, .aborting, .confirming, .readingBack: break
        }
    }
}

extension CollectionAddress {
    /// Returns the address with the bucket in its path. The address is unchanged if its path begins with the bucket or its host
    /// contains the bucket (`bucket.s3.…`).
    func inBucket(_ bucket: String?) -> CollectionAddress {
        guard let bucket, !bucket.isEmpty, segments.first != bucket, !origin.contains("://\(bucket.lowercased()).s3") else {
            return self
        }
        return inside(bucket)
    }
}
