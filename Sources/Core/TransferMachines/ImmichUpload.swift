import Foundation

/// An upload to Immich in three requests. The first request checks whether Immich has a photo with the same SHA-1. The second
/// request sends the photo in a form. The third request repeats the check. If the file is the video of a photo that Immich already
/// has, a fourth request links them.
///
/// If Immich already has the photo, the upload is complete. An earlier upload whose response was lost may have sent this photo.
///
/// The form depends on the version of Immich. Before version 3, the form must name the user's device. Version 3 refuses unknown
/// fields (immich-app/immich#27818). All versions accept ISO 8601 times with an offset, and version 3 requires the offset
/// (#26597).
struct ImmichUpload: UploadProtocol {
    enum State {
        /// The upload sends POST `bulk-upload-check`. `isSent` is `true` if the photo was sent. The request then confirms that
        /// Immich has the photo.
        case querying(isSent: Bool)
        /// The upload requests the version with GET before it sends the first form.
        case readingVersion
        /// The upload sends the form with POST.
        case sending
        /// The upload links the video to its photo with PUT.
        case linking
    }

    /// The first version whose form does not contain the device.
    private static let firstWithoutDevice = 3

    let plan: UploadPlan
    private(set) var state = State.querying(isSent: false)
    /// Immich's identifier of the photo.
    private var asset: String?
    private(set) var proof = UploadProof.answer
    private(set) var knowledge: ServerKnowledge
    /// `true` if the form contains the device.
    private var namesDevice: Bool
    /// `true` if the version was requested for this upload.
    private var hasQueriedVersion = false
    /// The outcome of the last refused form. `nil` if no form was refused.
    private var refusal: UploadOutcome?
    /// Records whether Immich may have the photo although the last check did not show it.
    private var doubt: NameDoubt
    /// The number of photos that Immich accepted and did not show, also after repeated checks.
    private var losses: Int
    private(set) var memory: UploadMemory?
    private(set) var remark: String?

    /// The maximum number of lost photos. The number is limited because Immich may have stored each photo.
    private static let maximumLosses = 2

    init(plan: UploadPlan, resuming memory: UploadMemory? = nil) {
        self.plan = plan
        doubt = NameDoubt(resuming: memory, sentIn: [.check])
        losses = memory?.creations ?? 0
        if memory?.step == .check { state = .querying(isSent: true) }
        knowledge = plan.knowledge
        namesDevice = plan.knowledge.immichVersion.map { $0 < Self.firstWithoutDevice } ?? true
    }

    /// An address that does not belong to a file of Immich. Immich responds with a page to each name outside its API.
    var addressOfNothing: String { site + "/api/" + FormBody.plain(plan.order.token) }

    /// The address of the site. The configured address may end with `/api`, which is removed here.
    private var site: String {
        var text = plan.collectionURL
        while text.hasSuffix("/") { text.removeLast() }
        return text.hasSuffix("/api") ? String(text.dropLast(4)) : text
    }

    private var form: FormBody {
        func text(_ time: Date?) -> String { (time ?? Date(timeIntervalSince1970: 0)).formatted(.iso8601) }
        let name = RemoteName.safe(plan.order.fileName)
        let device: [FormBody.Field] = [
            .init(name: "deviceAssetId", value: "\(name)-\(plan.order.sha1 ?? plan.order.token)"),
            .init(name: "deviceId", value: "stormy"),
        ]
        let facts: [FormBody.Field] = [
            .init(name: "fileCreatedAt", value: text(plan.order.creationTime)),
            .init(name: "fileModifiedAt", value: text(plan.order.modificationTime)), .init(name: "filename", value: name),
        ]
        var fields = (namesDevice ? device : []) + facts
        if let video = plan.order.company?.video { fields.append(.init(name: "livePhotoVideoId", value: video)) }
        return FormBody(
            token: plan.order.token, fields: fields,
            attachment: (plan.order.company?.sidecar).map { FormBody.Attachment(field: "sidecarData", $0) },
            fileField: "assetData", fileName: plan.order.fileName, contentType: plan.order.mediaType)
    }

    func next() -> UploadCommand {
        switch state {
        case .querying(let isSent):
            return .send(
                plan.request("POST", site + ImmichRecord.path, [HeaderField("Content-Type", "application/json")]),
                .data(ImmichRecord.question(sha1: plan.order.sha1 ?? "")),
                persistFirst: record(isSent ? .check : .chooseName))
        case .readingVersion:
            return .send(
                plan.request("GET", site + "/api/server/version"), .none, persistFirst: record(.chooseName))
        case .sending:
            let form = form
            let digest = plan.order.sha1.map { [HeaderField("x-immich-checksum", $0)] } ?? []
            var request = plan.request("POST", site + "/api/assets", [form.contentType] + digest)
            request.idleTimeout = max(request.idleTimeout, FormUpload.patience)
            return .send(request, form.content, persistFirst: record(.put))
        case .linking:
            let photo = CollectionAddress.encoded(plan.order.company?.photo ?? "", keeping: "")
            let body = (try? JSONEncoder().encode(Link(livePhotoVideoId: asset ?? ""))) ?? Data()
            return .send(
                plan.request("PUT", site + "/api/assets/" + photo, [HeaderField("Content-Type", "application/json")]),
                .data(body), persistFirst: record(.check))
        }
    }

    private func record(_ step: UploadMemory.Step) -> UploadMemory {
        UploadMemory(step: step, creations: losses == 0 ? nil : losses)
    }

    var storedBytes: Int64 {
        switch state {
        case .querying(isSent: true), .linking: plan.order.byteCount
        case .querying(isSent: false), .readingVersion, .sending: 0
        }
    }
    var stage: Int64 { storedBytes }

    /// Checks again whether Immich has the photo, after a response was lost.
    mutating func handleUncertainty() {
        if case .sending = state { state = .querying(isSent: false) }
    }

    /// Returns whether the refusal may be temporary. The status 400 is Immich's final decision about the form.
    func mayPass(_ head: ResponseHead, _ end: WireEnd) -> Bool { head.status != 400 && head.hasNoMeaningForUploads }

    mutating func answered(_ head: ResponseHead, _ end: WireEnd, _ pauses: Pauses) -> UploadOutcome {
        switch (state, head.status) {
        case (.querying(let isSent), 200..<300): return afterQuestion(head, end, isSent: isSent, pauses)
        // Earlier releases of Immich do not support this request. Later releases may use another request.
        case (.querying(let isSent), 400), (.querying(let isSent), 404), (.querying(let isSent), 405):
            return isSent ? afterNoWord(head) : begin()
        case (.readingVersion, _): return afterVersion(head, end)
        case (.linking, 200..<300): return finish()
        // The photo may have been removed, or the key of the user has no permission for this request.
        case (.linking, 400), (.linking, 403), (.linking, 404), (.linking, 405):
            remark = "Immich did not link the video to its photo"
            return finish()
        case (.sending, 200..<300):
            asset = (try? JSONDecoder().decode(Asset.self, from: end.body))?.id
            doubt.open()
            state = .querying(isSent: true)
            return .continue
        case (.sending, 400) where ServerReason(end.body)?.text.lowercased().contains("quota") == true:
            handleUncertainty()
            return pauses.full(head, "Immich has no space left for this user (400).")
        case (.sending, 400): return afterRefusedForm(head, end)
        case (.sending, 404):
            // The form did not reach Immich, so the next attempt has no reason to wait for the photo.
            memory = record(.chooseName)
            return .fail(head, -1100, "No Immich server was found at this address.")
        case (.sending, 500...):
            handleUncertainty()
            return pauses.afterOther(head)
        default: return pauses.afterOther(head)
        }
    }

    private mutating func afterQuestion(
        _ head: ResponseHead, _ end: WireEnd, isSent: Bool, _ pauses: Pauses
    ) -> UploadOutcome {
        switch ImmichRecord.finding(end.body) {
        case nil: return isSent ? afterNoWord(head) : begin()
        case .refused(let why): return .fail(head, -1011, "Immich refused the photo: \(why).")
        case .trashed: return .fail(head, -1011, "Immich has this photo in its trash. Restore the photo in Immich.")
        case .there(let known):
            proof = .digest
            asset = known ?? asset
            guard plan.order.company?.photo != nil, asset != nil else { return finish() }
            state = .linking
            return .continue
        case .absent:
            // Immich may show a new photo late.
            if doubt.shouldCheckAgain() { return pauses.retry(head, NameDoubt.notShown) }
            doubt.close()
            guard isSent else { return begin() }
            losses += 1
            guard losses < Self.maximumLosses else { return .fail(head, -1011, Self.lost) }
            state = .sending
            return pauses.retry(head, NameDoubt.notShown)
        }
    }

    private static let lost =
        "Immich accepted the photo \(maximumLosses) times and does not show it. Check whether Immich has the photo before you retry."

    /// Reads the version. If the version cannot be read, the upload continues. The response to the form then shows whether the
    /// form is right for the version.
    private mutating func afterVersion(_ head: ResponseHead, _ end: WireEnd) -> UploadOutcome {
        hasQueriedVersion = true
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

    /// Handles a refused form. The server may be newer than the remembered version, so the version is requested again. If the
    /// version cannot be read, the form for the other versions is sent once.
    private mutating func afterRefusedForm(_ head: ResponseHead, _ end: WireEnd) -> UploadOutcome {
        let isFirst = refusal == nil
        let outcome = UploadOutcome.fail(head, -1011, "Immich refused the photo.").explained(by: ServerReason(end.body))
        refusal = outcome
        guard isFirst else { return outcome }
        if !hasQueriedVersion {
            state = .readingVersion
        } else if knowledge.immichVersion == nil {
            namesDevice.toggle()
        } else {
            return outcome
        }
        return .continue
    }

    /// Finishes if the server cannot report whether it has the photo. Immich's response to the form contains an id of the photo.
    /// A success without an id comes from another system, usually from a captive portal.
    private func afterNoWord(_ head: ResponseHead) -> UploadOutcome {
        guard asset == nil else { return finish() }
        return .fail(
            head, -1011, "The server reported success without an id of the photo, so the server is probably not Immich.")
    }

    private mutating func begin() -> UploadOutcome {
        state = knowledge.immichVersion == nil && !hasQueriedVersion ? .readingVersion : .sending
        return .continue
    }

    private func finish() -> UploadOutcome {
        let place = asset.map { "/photos/" + CollectionAddress.encoded($0, keeping: "") } ?? "/photos"
        return .finished(remoteURL: PublicAddress.of(site + place))
    }

    private struct Asset: Decodable { let id: String }

    private struct Link: Encodable { let livePhotoVideoId: String }

    private struct Version: Decodable {
        /// The greatest number that is accepted as a version.
        static let most = 1000
        let major: Int
    }
}
