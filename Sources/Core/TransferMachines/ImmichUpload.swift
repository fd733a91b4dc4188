import Foundation

/// An upload to Immich: it is asked for the photo by its SHA-1, sent the photo in a form, and asked again.
///
/// A photo it has already is what was wanted, also when it is a first copy of ours whose answer was lost.
///
/// The form depends on Immich's version. Before version 3 the form has to name the device, and version 3 refuses fields that it does not know
/// (immich-app/immich#27818). All versions take ISO 8601 times with an offset, and version 3 requires the offset (#26597).
struct ImmichUpload: UploadProtocol {
    enum State {
        /// POST `bulk-upload-check`. `isSent`: to prove it.
        case asking(isSent: Bool)
        /// GET the version, before the first form.
        case readingVersion
        /// POST the form.
        case sending
    }

    /// The first version whose form does not name the device.
    private static let firstWithoutDevice = 3

    let plan: UploadPlan
    private(set) var state = State.asking(isSent: false)
    /// Immich's number of it.
    private var asset: String?
    private(set) var proof = UploadProof.answer
    private(set) var knowledge: ServerKnowledge
    /// `true` if the form names the device.
    private var namesDevice: Bool
    /// `true` if the version was requested for this upload.
    private var hasAskedVersion = false
    /// The outcome of a refused form if another form cannot help.
    private var refusal: UploadOutcome?

    init(plan: UploadPlan) {
        self.plan = plan
        knowledge = plan.knowledge
        namesDevice = plan.knowledge.immichVersion.map { $0 < Self.firstWithoutDevice } ?? true
    }

    /// Immich answers each name outside its API with a page.
    var addressOfNothing: String { site + "/api/" + FormBody.plain(plan.order.token) }

    /// The address is the site's, or its `/api`.
    private var site: String {
        var text = plan.collectionURL
        while text.hasSuffix("/") { text.removeLast() }
        return text.hasSuffix("/api") ? String(text.dropLast(4)) : text
    }

    private var form: FormBody {
        let time = (plan.order.modificationTime ?? Date(timeIntervalSince1970: 0)).formatted(.iso8601)
        let name = RemoteName.safe(plan.order.fileName)
        let device: [FormBody.Field] = [
            .init(name: "deviceAssetId", value: "\(name)-\(plan.order.sha1 ?? plan.order.token)"),
            .init(name: "deviceId", value: "stormy"),
        ]
        return FormBody(
            token: plan.order.token,
            fields: (namesDevice ? device : []) + [
                .init(name: "fileCreatedAt", value: time), .init(name: "fileModifiedAt", value: time),
                .init(name: "filename", value: name),
            ], fileField: "assetData", fileName: plan.order.fileName, contentType: plan.order.mediaType)
    }

    func next() -> UploadCommand {
        switch state {
        case .asking(let isSent):
            return .send(
                plan.request("POST", site + ImmichRecord.path, [HeaderField("Content-Type", "application/json")]),
                .data(ImmichRecord.question(sha1: plan.order.sha1 ?? "")),
                persistFirst: UploadMemory(step: isSent ? .check : .chooseName))
        case .readingVersion:
            return .send(
                plan.request("GET", site + "/api/server/version"), .none, persistFirst: UploadMemory(step: .chooseName))
        case .sending:
            let form = form
            let digest = plan.order.sha1.map { [HeaderField("x-immich-checksum", $0)] } ?? []
            var request = plan.request("POST", site + "/api/assets", [form.contentType] + digest)
            request.idleTimeout = max(request.idleTimeout, FormUpload.patience)
            return .send(request, form.content, persistFirst: UploadMemory(step: .put))
        }
    }

    var storedBytes: Int64 { if case .asking(isSent: true) = state { plan.order.byteCount } else { 0 } }
    var stage: Int64 { storedBytes }

    /// It knows by the digest whether it has it.
    mutating func noteUncertainty() { if case .sending = state { state = .asking(isSent: false) } }

    /// 400 is Immich's decision about the form.
    func mayPass(_ head: ResponseHead, _ end: WireEnd) -> Bool { head.status != 400 && head.hasNoMeaningForUploads }

    mutating func answered(_ head: ResponseHead, _ end: WireEnd, _ pauses: Pauses) -> UploadOutcome {
        switch (state, head.status) {
        case (.asking(let isSent), 200..<300): return afterQuestion(head, end, isSent: isSent, pauses)
        // Releases before it had this question, and those after it may have another.
        case (.asking(let isSent), 400), (.asking(let isSent), 404), (.asking(let isSent), 405):
            return isSent ? afterNoWord(head) : begin()
        case (.readingVersion, _): return afterVersion(head, end)
        case (.sending, 200..<300):
            asset = (try? JSONDecoder().decode(Asset.self, from: end.body))?.id
            state = .asking(isSent: true)
            return .continue
        case (.sending, 400) where ServerReason(end.body)?.text.lowercased().contains("quota") == true:
            noteUncertainty()
            return pauses.full(head, "Immich has no space left for this user (400).")
        case (.sending, 400): return afterRefusedForm(head, end)
        case (.sending, 404): return .fail(head, -1100, "There is no Immich at this address.")
        case (.sending, 500...):
            noteUncertainty()
            return pauses.afterOther(head)
        default: return pauses.afterOther(head)
        }
    }

    private mutating func afterQuestion(
        _ head: ResponseHead, _ end: WireEnd, isSent: Bool, _ pauses: Pauses
    ) -> UploadOutcome {
        switch ImmichRecord.finding(end.body) {
        case nil: return isSent ? afterNoWord(head) : begin()
        case .refused(let why): return .fail(head, -1011, "Immich does not take the photo: \(why).")
        case .trashed: return .fail(head, -1011, "Immich has this photo in its trash: restore it there.")
        case .there(let known):
            proof = .digest
            asset = known ?? asset
            return finish()
        case .absent:
            guard isSent else { return begin() }
            state = .sending
            return pauses.retry(head, "The server does not show the file it took.")
        }
    }

    /// A version that cannot be read does not delay the photo: the form itself is the question then.
    private mutating func afterVersion(_ head: ResponseHead, _ end: WireEnd) -> UploadOutcome {
        hasAskedVersion = true
        state = .sending
        if (200..<300).contains(head.status), let version = try? JSONDecoder().decode(Version.self, from: end.body),
            (1...Version.most).contains(version.major)
        {
            knowledge.immichVersion = version.major
            let isOtherForm = namesDevice != (version.major < Self.firstWithoutDevice)
            namesDevice = version.major < Self.firstWithoutDevice
            if let refusal, !isOtherForm { return refusal }
        } else if refusal != nil {
            knowledge.immichVersion = nil
            namesDevice.toggle()
        }
        return .continue
    }

    /// A remembered version can be older than the server: it is requested again. If the version cannot be read, the other
    /// form is sent once.
    private mutating func afterRefusedForm(_ head: ResponseHead, _ end: WireEnd) -> UploadOutcome {
        let isFirst = refusal == nil
        let outcome = UploadOutcome.fail(head, -1011, "Immich does not take the photo.").explained(by: ServerReason(end.body))
        refusal = outcome
        guard isFirst else { return outcome }
        if !hasAskedVersion {
            state = .readingVersion
        } else if knowledge.immichVersion == nil {
            namesDevice.toggle()
        } else {
            return outcome
        }
        return .continue
    }

    /// It cannot be asked whether it has the photo. Immich names what it takes; whoever says yes without a name is somebody
    /// else: a log-in page, mostly.
    private func afterNoWord(_ head: ResponseHead) -> UploadOutcome {
        guard asset == nil else { return finish() }
        return .fail(head, -1011, "The server says yes, but not as Immich does: it does not name the photo.")
    }

    private mutating func begin() -> UploadOutcome {
        state = knowledge.immichVersion == nil && !hasAskedVersion ? .readingVersion : .sending
        return .continue
    }

    private func finish() -> UploadOutcome {
        let place = asset.map { "/photos/" + CollectionAddress.encoded($0, keeping: "") } ?? "/photos"
        return .finished(remoteURL: PublicAddress.of(site + place))
    }

    private struct Asset: Decodable { let id: String }

    private struct Version: Decodable {
        /// A larger number is not a version.
        static let most = 1000
        let major: Int
    }
}
