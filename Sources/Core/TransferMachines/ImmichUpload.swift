import Foundation

/// An upload to Immich: it is asked for the photo by its SHA-1, sent the photo in a form, and asked again.
///
/// A photo it has already is what was wanted, also when it is a first copy of ours whose answer was lost.
struct ImmichUpload: UploadProtocol {
    enum State {
        /// POST `bulk-upload-check`. `isSent`: to prove it.
        case asking(isSent: Bool)
        /// POST the form.
        case sending
    }

    let plan: UploadPlan
    private(set) var state = State.asking(isSent: false)
    /// Immich's number of it.
    private var asset: String?
    private(set) var proof = UploadProof.answer

    /// Immich before version 3 requires the names of the device, and version 3 refuses them.
    private var namesDevice = true

    init(plan: UploadPlan) { self.plan = plan }

    /// The address is the site's, or its `/api`.
    private var site: String {
        var text = plan.collectionURL
        while text.hasSuffix("/") { text.removeLast() }
        return text.hasSuffix("/api") ? String(text.dropLast(4)) : text
    }

    private var form: FormBody {
        let time = (plan.modificationTime ?? Date(timeIntervalSince1970: 0)).formatted(.iso8601)
        let name = RemoteName.safe(plan.fileName)
        let device: [FormBody.Field] = [
            .init(name: "deviceAssetId", value: "\(name)-\(plan.sha1 ?? plan.token)"), .init(name: "deviceId", value: "stormy"),
        ]
        return FormBody(
            token: plan.token,
            fields: (namesDevice ? device : []) + [
                .init(name: "fileCreatedAt", value: time), .init(name: "fileModifiedAt", value: time),
                .init(name: "filename", value: name),
            ], fileField: "assetData", fileName: plan.fileName, contentType: plan.contentType)
    }

    func next() -> UploadCommand {
        switch state {
        case .asking(let isSent):
            let question = Question(assets: [.init(id: "photo", checksum: plan.sha1 ?? "")])
            let words = (try? JSONEncoder().encode(question)) ?? Data()
            return .send(
                plan.request("POST", site + "/api/assets/bulk-upload-check", [HeaderField("Content-Type", "application/json")]),
                .data(words), persistFirst: UploadMemory(step: isSent ? .check : .chooseName))
        case .sending:
            let form = form
            let digest = plan.sha1.map { [HeaderField("x-immich-checksum", $0)] } ?? []
            return .send(
                plan.request("POST", site + "/api/assets", [form.contentType] + digest), form.content,
                persistFirst: UploadMemory(step: .put))
        }
    }

    var storedBytes: Int64 { if case .asking(isSent: true) = state { plan.byteCount } else { 0 } }
    var stage: Int64 { storedBytes }

    /// It knows by the digest whether it has it.
    mutating func noteUncertainty() { if case .sending = state { state = .asking(isSent: false) } }

    mutating func answered(_ head: ResponseHead, _ end: WireEnd, _ pauses: Pauses) -> UploadOutcome {
        switch (state, head.status) {
        case (.asking(let isSent), 200..<300):
            guard let answer = try? JSONDecoder().decode(Verdicts.self, from: end.body).results.first else {
                return isSent ? afterNoWord(head) : begin()
            }
            if answer.action == "reject" {
                guard answer.reason == "duplicate" else {
                    return .fail(head, -1011, "Immich does not take the photo: \(ServerText.line(answer.reason)).")
                }
                guard answer.isTrashed != true else {
                    return .fail(head, -1011, "Immich has this photo in its trash: restore it there.")
                }
                proof = .digest
                asset = answer.assetId ?? asset
                return finish()
            }
            guard isSent else { return begin() }
            state = .sending
            return pauses.retry(head, "The server does not show the file it took.")
        // Releases before it had this question, and those after it may have another.
        case (.asking(let isSent), 400), (.asking(let isSent), 404), (.asking(let isSent), 405):
            return isSent ? afterNoWord(head) : begin()
        case (.sending, 200..<300):
            guard end.bytesSent >= form.length(around: plan.byteCount) else {
                return pauses.retry(head, "The server answered before it had the whole file.")
            }
            asset = (try? JSONDecoder().decode(Asset.self, from: end.body))?.id
            state = .asking(isSent: true)
            return .continue
        case (.sending, 400) where namesDevice:
            namesDevice = false
            return .continue
        case (.sending, 400):
            let words =
                (try? JSONDecoder().decode(Trouble.self, from: end.body))?.message.map { ": \(ServerText.line($0))" } ?? ""
            return .fail(head, -1011, "Immich does not take the photo\(words).")
        case (.sending, 404): return .fail(head, -1100, "There is no Immich at this address.")
        case (.sending, 500...):
            noteUncertainty()
            return pauses.afterOther(head)
        default: return pauses.afterOther(head)
        }
    }

    /// It cannot be asked whether it has the photo. Immich names what it takes; whoever says yes without a name is somebody
    /// else: a log-in page, mostly.
    private func afterNoWord(_ head: ResponseHead) -> UploadOutcome {
        guard asset == nil else { return finish() }
        return .fail(head, -1011, "The server says yes, but not as Immich does: it does not name the photo.")
    }

    private mutating func begin() -> UploadOutcome {
        state = .sending
        return .continue
    }

    private func finish() -> UploadOutcome {
        let place = asset.map { "/photos/" + CollectionAddress.encoded($0, keeping: "") } ?? "/photos"
        return .finished(remoteURL: PublicAddress.of(site + place))
    }

    // MARK: Immich's words

    private struct Question: Encodable {
        struct Asset: Encodable {
            let id: String
            let checksum: String
        }

        let assets: [Asset]
    }

    private struct Verdicts: Decodable {
        struct Verdict: Decodable {
            let action: String
            let reason: String?
            let assetId: String?
            let isTrashed: Bool?
        }

        let results: [Verdict]
    }

    private struct Asset: Decodable { let id: String }

    private struct Trouble: Decodable { let message: String? }
}
