import Foundation

/// An upload to Nextcloud in chunks (version 2): a folder of its own for the chunks, which a MOVE puts together under the final
/// name.
///
/// The rule: no chunk that the server lists is sent again, nobody else's file is touched (`Overwrite: F`, and a look before it),
/// and after a MOVE without an answer the target is looked at before anything is sent.
struct NextcloudUpload: UploadProtocol {
    enum State {
        /// HEAD the final name.
        case choosingName(Int)
        /// MKCOL of the chunks' folder.
        case makingPlace(Int)
        /// MKCOL of a level of the final folder: up until a parent exists, then down again.
        case makingFolder(Int, level: Int, goingDown: Bool)
        /// PROPFIND of the chunks' folder.
        case asking(Int)
        /// PUT.
        case sendingChunk(Int, Int)
        /// MOVE.
        case moving(Int)
        /// PROPFIND of the chunks' folder after a MOVE without a clear yes: it goes with a MOVE that was carried out.
        /// `wasRefused`: the server said 412.
        case lookingForPlace(Int, wasRefused: Bool)
        /// HEAD the final name, once the chunks are gone: is it ours?
        case lookingForTarget(Int)
        /// HEAD what the MOVE made.
        case checking(Int)
    }

    /// Nextcloud's least size of a chunk that is not the last.
    static let chunkBytes: Int64 = 5 << 20

    let plan: UploadPlan
    let address: CollectionAddress?
    let parts: UploadParts
    var state: State
    private var creations: Int
    private var stored: Set<Int> = []
    private(set) var proof = UploadProof.answer

    init(plan: UploadPlan, resuming memory: UploadMemory? = nil) {
        self.plan = plan
        address = CollectionAddress(plan.collectionURL)
        parts = UploadParts(byteCount: plan.byteCount, smallest: Self.chunkBytes)
        creations = memory?.creations ?? 0
        let name = memory?.nameIndex ?? 0
        state =
            switch memory?.step {
            case nil, .chooseName, .put: .choosingName(name)
            case .create: .makingPlace(name)
            case .ask, .append: .asking(name)
            case .move: .lookingForPlace(name, wasRefused: false)
            case .check: .checking(name)
            }
    }

    // MARK: Requests

    /// Where `files` stands in the path of `…/remote.php/dav/files/USER/FOLDER/`.
    private var filesLevel: Int? {
        guard let segments = address?.segments, let dav = segments.firstIndex(of: "dav"), dav > 0,
            segments[dav - 1] == "remote.php", segments.count > dav + 2, segments[dav + 1] == "files"
        else { return nil }
        return dav + 1
    }

    /// The level of the final folder; `nil`: it is the user's own, which nobody makes.
    private var folderLevel: Int? {
        guard let address, let level = filesLevel, address.segments.count > level + 2 else { return nil }
        return address.segments.count
    }

    private var place: String? {
        guard let address, let level = filesLevel else { return nil }
        let user = address.segments[level + 1]
        return address.folder(levels: level) + "uploads/\(user)/stormy-\(FormBody.plain(plan.token))"
    }

    func next() -> UploadCommand {
        guard let address else { return .fail(TransferTrouble(.unsupportedURL)) }
        guard let place else {
            let message = "The address is not a folder of Nextcloud's: …/remote.php/dav/files/USER/FOLDER/ is meant."
            return .fail(TransferTrouble(code: -1002, message: message))
        }
        switch state {
        case .choosingName(let index): return send("HEAD", target(index), remembering: .chooseName, index)
        case .makingPlace(let index): return send("MKCOL", place, [destination(index)], remembering: .create, index)
        case .makingFolder(let index, let level, _):
            return send("MKCOL", address.folder(levels: level), remembering: .create, index)
        case .asking(let index):
            return send("PROPFIND", place + "/", [HeaderField("Depth", "1")], remembering: .ask, index)
        case .sendingChunk(let index, let number):
            let name = String(String(100_000 + number).dropFirst())
            return send(
                "PUT", "\(place)/\(name)", [destination(index), length], parts.content(of: number), remembering: .append, index)
        case .moving(let index):
            var headers = [destination(index), length, HeaderField("Overwrite", "F")]
            if let time = plan.modificationTime {
                headers.append(HeaderField("X-OC-Mtime", "\(Int(time.timeIntervalSince1970))"))
            }
            if let checksum { headers.append(HeaderField("OC-Checksum", checksum)) }
            return send("MOVE", place + "/.file", headers, remembering: .move, index)
        case .lookingForPlace(let index, _):
            return send("PROPFIND", place + "/", [HeaderField("Depth", "1")], remembering: .move, index)
        case .lookingForTarget(let index): return send("HEAD", target(index), remembering: .move, index)
        case .checking(let index): return send("HEAD", target(index), remembering: .check, index)
        }
    }

    private func name(_ index: Int) -> String { plan.name(index) }

    private func target(_ index: Int) -> String { address?.file(name(index)) ?? "" }

    private func destination(_ index: Int) -> HeaderField {
        HeaderField("Destination", address?.publicFile(name(index)) ?? "")
    }

    /// ownCloud compares it with what it put together; Nextcloud keeps it for those who fetch the file.
    private var checksum: String? { plan.sha256.map { "SHA256:\($0.lowercased())" } }

    private var length: HeaderField { HeaderField("OC-Total-Length", "\(plan.byteCount)") }

    private func send(
        _ method: String, _ url: String, _ headers: [HeaderField] = [], _ content: UploadContent = .none,
        remembering step: UploadMemory.Step, _ index: Int
    ) -> UploadCommand {
        let memory = UploadMemory(step: step, nameIndex: index, creations: creations)
        return .send(plan.request(method, url, headers), content, persistFirst: memory)
    }

    // MARK: How far

    var storedBytes: Int64 {
        switch state {
        case .moving, .lookingForPlace, .lookingForTarget, .checking: plan.byteCount
        case .choosingName, .makingPlace, .makingFolder, .asking, .sendingChunk: parts.bytes(of: stored)
        }
    }

    var stage: Int64 { storedBytes }

    var nameIndex: Int {
        switch state {
        case .choosingName(let index), .makingPlace(let index), .makingFolder(let index, _, _), .asking(let index),
            .sendingChunk(let index, _), .moving(let index), .lookingForPlace(let index, _), .lookingForTarget(let index),
            .checking(let index):
            index
        }
    }

    var removal: WireRequest? {
        switch state {
        case .choosingName, .checking: nil
        case .makingPlace, .makingFolder, .asking, .sendingChunk, .moving, .lookingForPlace, .lookingForTarget:
            place.map { plan.request("DELETE", $0) }
        }
    }

    // MARK: Answers

    mutating func noteUncertainty() {
        switch state {
        case .sendingChunk(let index, _): state = .asking(index)
        case .moving(let index): state = .lookingForPlace(index, wasRefused: false)
        case .choosingName, .makingPlace, .makingFolder, .asking, .lookingForPlace, .lookingForTarget, .checking: break
        }
    }

    mutating func answered(_ head: ResponseHead, _ end: WireEnd, _ pauses: Pauses) -> UploadOutcome {
        if case .makingFolder(let index, let level, let goingDown) = state, head.status == 403 {
            return afterFolder(head, index, level: level, goingDown: goingDown, pauses)
        }
        if let common = CommonAnswer(head, pauses) {
            if common.mayHaveActed { noteUncertainty() }
            return common.outcome
        }
        switch state {
        case .choosingName(let index): return afterName(head, index, pauses)
        case .makingPlace(let index): return afterPlace(head, index, pauses)
        case .makingFolder(let index, let level, let goingDown):
            return afterFolder(head, index, level: level, goingDown: goingDown, pauses)
        case .asking(let index): return afterQuestion(head, end, index, pauses)
        case .sendingChunk(let index, let number): return afterChunk(head, index, number, pauses)
        case .moving(let index): return afterMove(head, index, pauses)
        case .lookingForPlace(let index, let wasRefused): return afterPlaceCheck(head, index, wasRefused: wasRefused, pauses)
        case .lookingForTarget(let index): return afterTarget(head, index, pauses)
        case .checking(let index): return afterCheck(head, index, pauses)
        }
    }

    private mutating func afterName(_ head: ResponseHead, _ index: Int, _ pauses: Pauses) -> UploadOutcome {
        switch head.status {
        case 200..<300 where head.isPage(inPlaceOf: plan): return pauses.page(head)
        case 200..<300: return tryName(after: index)
        case 404, 405, 409, 410:
            // After a taken name the chunks are there already.
            state = stored.isEmpty ? .makingPlace(index) : .asking(index)
            return .continue
        default: return pauses.afterOther(head)
        }
    }

    private mutating func tryName(after index: Int) -> UploadOutcome {
        guard index < RemoteName.maximumIndex else { return .everyNameIsTaken }
        state = .choosingName(index + 1)
        return .continue
    }

    private mutating func afterPlace(_ head: ResponseHead, _ index: Int, _ pauses: Pauses) -> UploadOutcome {
        switch head.status {
        case 200..<300:
            creations += 1
            stored = []
            return goOn(index)
        // It is there: an earlier process, or a first copy of this very request.
        case 405:
            state = .asking(index)
            return .continue
        case 404, 409:
            guard let folderLevel else {
                return .fail(head, -1100, "The server has no place for uploads at this address.")
            }
            state = .makingFolder(index, level: folderLevel, goingDown: false)
            return .continue
        default: return pauses.afterOther(head)
        }
    }

    private mutating func afterFolder(
        _ head: ResponseHead, _ index: Int, level: Int, goingDown: Bool, _ pauses: Pauses
    ) -> UploadOutcome {
        switch head.status {
        // Another upload may have made it just now: what goes into it will tell.
        case 200..<300, 405, 403:
            guard let address, level < address.segments.count else {
                guard creations < UploadPlace.maximumCreations else {
                    return .fail(head, -1100, "The server has no place for uploads at this address.")
                }
                creations += 1
                state = stored.isEmpty ? .makingPlace(index) : .moving(index)
                return .continue
            }
            state = .makingFolder(index, level: level + 1, goingDown: true)
            return .continue
        case 404, 409:
            guard !goingDown, let files = filesLevel, level > files + 3 else {
                return .fail(head, -1100, "The folder does not exist on the server and cannot be made.")
            }
            state = .makingFolder(index, level: level - 1, goingDown: false)
            return .continue
        default: return pauses.afterOther(head)
        }
    }

    private mutating func afterQuestion(
        _ head: ResponseHead, _ end: WireEnd, _ index: Int, _ pauses: Pauses
    ) -> UploadOutcome {
        if [404, 410].contains(head.status) { return startOver(head, index, pauses) }
        guard (200..<300).contains(head.status) else { return pauses.afterOther(head) }
        guard let answer = AnswerXML.read(end.body), answer.name == "multistatus" else {
            return pauses.retry(head, "The server does not say which parts of the file it has.")
        }
        var sizes: [Int: Int64] = [:]
        for response in answer.all("response") {
            guard let number = (response["href"]?.text.split(separator: "/").last).flatMap({ Int($0) }),
                let size = response.first("getcontentlength").flatMap({ Int64($0.text) })
            else { continue }
            sizes[number] = size
        }
        stored = parts.whole(sizes)
        return goOn(index)
    }

    private mutating func goOn(_ index: Int) -> UploadOutcome {
        let missing = (1...parts.count).first { !stored.contains($0) }
        state = missing.map { .sendingChunk(index, $0) } ?? .moving(index)
        return .continue
    }

    private mutating func startOver(_ head: ResponseHead, _ index: Int, _ pauses: Pauses) -> UploadOutcome {
        guard creations < UploadPlace.maximumCreations else {
            return .fail(head, -1011, "The server has thrown away what it had of the file. It did so \(creations) times.")
        }
        stored = []
        state = .makingPlace(index)
        return pauses.retry(head, "The server has thrown away what it had of the file.")
    }

    private mutating func afterChunk(_ head: ResponseHead, _ index: Int, _ number: Int, _ pauses: Pauses) -> UploadOutcome {
        switch head.status {
        case 200..<300:
            stored.insert(number)
            return goOn(index)
        case 404, 409, 410: return startOver(head, index, pauses)
        default:
            noteUncertainty()
            return pauses.afterOther(head)
        }
    }

    private mutating func afterMove(_ head: ResponseHead, _ index: Int, _ pauses: Pauses) -> UploadOutcome {
        switch head.status {
        case 201, 204, 200:
            state = .checking(index)
            return .continue
        case 412:
            // Somebody has the name; or a first copy of this MOVE was carried out.
            state = .lookingForPlace(index, wasRefused: true)
            return .continue
        case 409:
            guard let folderLevel else {
                return .fail(head, -1100, "The folder does not exist on the server and cannot be made.")
            }
            state = .makingFolder(index, level: folderLevel, goingDown: false)
            return .continue
        case 400:
            guard creations < UploadPlace.maximumCreations else { return pauses.afterOther(head) }
            creations += 1
            state = .asking(index)
            return pauses.retry(head, "The server could not put the chunks together.")
        case 404, 410:
            state = .lookingForTarget(index)
            return pauses.retry(head, "The server has thrown away what it had of the file.")
        default:
            noteUncertainty()
            return pauses.afterOther(head)
        }
    }

    private mutating func afterPlaceCheck(
        _ head: ResponseHead, _ index: Int, wasRefused: Bool, _ pauses: Pauses
    ) -> UploadOutcome {
        switch head.status {
        case 200..<300:
            if wasRefused { return tryName(after: index) }
            state = .moving(index)
            return .continue
        case 404, 410:
            state = .lookingForTarget(index)
            return .continue
        default: return pauses.afterOther(head)
        }
    }

    /// The chunks are gone, and the name was free just before: a file of our length is ours.
    private mutating func afterTarget(_ head: ResponseHead, _ index: Int, _ pauses: Pauses) -> UploadOutcome {
        switch head.status {
        case 200..<300: return head.contentLength == plan.byteCount ? finish(index, .length) : tryName(after: index)
        case 404, 405, 409, 410:
            state = .asking(index)
            return .continue
        default: return pauses.afterOther(head)
        }
    }

    private mutating func afterCheck(_ head: ResponseHead, _ index: Int, _ pauses: Pauses) -> UploadOutcome {
        switch head.status {
        case 200..<300:
            guard let length = head.contentLength, head["Content-Encoding"] == nil else { return finish(index, .answer) }
            guard length == plan.byteCount else {
                return .fail(head, -1011, "The server kept \(length) of \(plan.byteCount) bytes.")
            }
            if let checksum, let kept = head["OC-Checksum"], kept.uppercased().hasPrefix("SHA256:"),
                kept.caseInsensitiveCompare(checksum) != .orderedSame
            {
                return .fail(head, -1011, "The server kept other bytes than were sent: their SHA-256 differs.")
            }
            // The same checksum proves no more than the length: it may be the one that it was told.
            return finish(index, .length)
        case 404, 409, 410:
            state = .asking(index)
            return pauses.retry(head, "The server does not show the file it took.")
        case 405, 501: return finish(index, .answer)
        default: return pauses.afterOther(head)
        }
    }

    private mutating func finish(_ index: Int, _ proof: UploadProof) -> UploadOutcome {
        self.proof = proof
        return .finished(remoteURL: address?.publicFile(name(index)) ?? plan.collectionURL)
    }
}
