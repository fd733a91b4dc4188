import Foundation

/// An upload to Nextcloud in chunks (version 2). The chunks are sent to a separate folder. A MOVE combines the chunks into a file
/// with the final name.
///
/// The upload does not send a chunk again if the server lists the chunk. The upload does not change other files, because it
/// checks the name and sends `Overwrite: F`. If no response to the MOVE arrived, the upload checks the final file before it sends
/// another request.
struct NextcloudUpload: UploadProtocol {
    enum State {
        /// The upload sends HEAD for the final name.
        case choosingName(Int)
        /// The upload sends HEAD and then GET for a name that no file has, because the server reported many names as taken.
        case doubting(Int)
        /// The upload makes the chunks' folder by MKCOL.
        case makingPlace(Int)
        /// The upload makes one folder of the final path by MKCOL. The upload continues with the parent folders until one of them
        /// exists, and then makes the folders below it.
        case makingFolder(Int, level: Int, goingDown: Bool)
        /// The upload lists the chunks' folder by PROPFIND.
        case querying(Int)
        /// The upload sends a chunk by PUT.
        case sendingChunk(Int, Int)
        /// The upload combines the chunks into the final file by MOVE.
        case moving(Int)
        /// The MOVE had no clear success, and the upload lists the chunks' folder by PROPFIND. A successful MOVE removes this
        /// folder. `wasRefused` is `true` if the server responded with 412.
        case queryingPlace(Int, wasRefused: Bool)
        /// The chunks do not exist any more, or the name was refused. The upload sends HEAD for the final name. This upload may
        /// have made the file with this name. `wasRefused` is `true` if the chunks exist and the server responded with 412.
        case queryingTarget(Int, wasRefused: Bool)
        /// The MOVE had no clear success, and the upload reads by GET a file that has the name and the length of this upload's
        /// file.
        case readingBack(Int, ReadBack)
        /// The upload sends HEAD for the file that the MOVE made.
        case checking(Int)
    }

    /// Nextcloud's minimum size of a chunk in bytes. The last chunk may be smaller.
    static let chunkBytes: Int64 = 5 << 20

    let plan: UploadPlan
    let address: CollectionAddress?
    let parts: UploadParts
    var state: State
    var creations: Int
    var search: NameSearch
    var forbidden: ForbiddenCharacters
    /// Records whether an existing file with the final name may be the file of this upload.
    var doubt: NameDoubt
    var stored: Set<Int> = []
    var proof = UploadProof.answer

    init(plan: UploadPlan, resuming memory: UploadMemory? = nil) {
        self.plan = plan
        address = CollectionAddress(plan.collectionURL)
        parts = UploadParts(byteCount: plan.order.byteCount, smallest: Self.chunkBytes)
        creations = memory?.creations ?? 0
        search = NameSearch(resuming: memory)
        doubt = NameDoubt(resuming: memory, sentIn: [.move, .check])
        forbidden = ForbiddenCharacters(resuming: memory)
        let name = memory?.nameIndex ?? 0
        state =
            switch memory?.step {
            case nil, .chooseName, .put: .choosingName(name)
            case .create: .makingPlace(name)
            case .ask, .append: .querying(name)
            case .move: .queryingPlace(name, wasRefused: false)
            case .check: .checking(name)
            }
    }

    // MARK: Requests

    /// The index of the segment `files` in the path `…/remote.php/dav/files/USER/FOLDER/`.
    var filesLevel: Int? {
        guard let segments = address?.segments, let dav = segments.firstIndex(of: "dav"), dav > 0,
            segments[dav - 1] == "remote.php", segments.count > dav + 2, segments[dav + 1] == "files"
        else { return nil }
        return dav + 1
    }

    /// The level of the final folder. `nil` if the final folder is the user's root folder, which always exists.
    var folderLevel: Int? {
        guard let address, let level = filesLevel, address.segments.count > level + 2 else { return nil }
        return address.segments.count
    }

    private var place: String? {
        guard let address, let level = filesLevel else { return nil }
        let user = address.segments[level + 1]
        return address.folder(levels: level) + "uploads/\(user)/stormy-\(FormBody.plain(plan.order.token))"
    }

    func next() -> UploadCommand {
        guard let address else { return .fail(TransferTrouble(.unsupportedURL)) }
        guard let place else {
            let message = "The address is not a folder of Nextcloud. Expected: …/remote.php/dav/files/USER/FOLDER/"
            return .fail(TransferTrouble(code: -1002, message: message))
        }
        switch state {
        case .choosingName(let index): return send("HEAD", target(index), remembering: .chooseName, index)
        case .doubting(let index):
            let url = address.file(forbidden.replaced(in: plan.nobodysName))
            return send(search.methodForFreeName, url, remembering: .chooseName, index)
        case .makingPlace(let index): return send("MKCOL", place, [destination(index)], remembering: .create, index)
        case .makingFolder(let index, let level, _):
            return send("MKCOL", address.folder(levels: level), remembering: .create, index)
        case .querying(let index):
            return send("PROPFIND", place + "/", [HeaderField("Depth", "1")], remembering: .ask, index)
        case .sendingChunk(let index, let number):
            let name = String(String(100_000 + number).dropFirst())
            return send(
                "PUT", "\(place)/\(name)", [destination(index), length], parts.content(of: number), remembering: .append, index)
        case .moving(let index):
            var headers = [destination(index), length, HeaderField("Overwrite", "F")]
            if let time = plan.order.modificationTime {
                headers.append(HeaderField("X-OC-Mtime", "\(Int(time.timeIntervalSince1970))"))
            }
            if let checksum { headers.append(HeaderField("OC-Checksum", checksum)) }
            return send("MOVE", place + "/.file", headers, remembering: .move, index)
        case .queryingPlace(let index, _):
            return send("PROPFIND", place + "/", [HeaderField("Depth", "1")], remembering: .move, index)
        case .queryingTarget(let index, let wasRefused):
            return send("HEAD", target(index), wasRefused ? [NameDoubt.wantedDigest] : [], remembering: .move, index)
        case .readingBack(let index, let question):
            let request = plan.request("GET", target(index), question.headers)
            return question.command(request, persistFirst: memory(doubt.isOpen ? .move : .chooseName, index))
        case .checking(let index): return send("HEAD", target(index), remembering: .check, index)
        }
    }

    func name(_ index: Int) -> String { forbidden.replaced(in: plan.name(index, isMarked: search.distrustsHead)) }

    var remark: String? { forbidden.remark }

    private func target(_ index: Int) -> String { address?.file(name(index)) ?? "" }

    private func destination(_ index: Int) -> HeaderField {
        HeaderField("Destination", address?.publicFile(name(index)) ?? "")
    }

    /// The checksum of the file. ownCloud compares this checksum with the combined file. Nextcloud stores this checksum for
    /// downloads.
    var checksum: String? { plan.sha256.map { "SHA256:\($0.lowercased())" } }

    private var length: HeaderField { HeaderField("OC-Total-Length", "\(plan.order.byteCount)") }

    private func send(
        _ method: String, _ url: String, _ headers: [HeaderField] = [], _ content: UploadContent = .none,
        remembering step: UploadMemory.Step, _ index: Int
    ) -> UploadCommand {
        .send(plan.request(method, url, headers), content, persistFirst: memory(step, index))
    }

    private func memory(_ step: UploadMemory.Step, _ index: Int) -> UploadMemory {
        UploadMemory(
            step: step, nameIndex: index, creations: creations, distrustsHead: search.distrustsHead,
            replaced: forbidden.found, nameRules: forbidden.rules.rawValue, isDoubted: doubt.isOpen)
    }

    // MARK: Progress

    var storedBytes: Int64 {
        switch state {
        case .moving, .queryingPlace, .queryingTarget, .checking: plan.order.byteCount
        case .readingBack where doubt.isOpen: plan.order.byteCount
        case .choosingName, .doubting, .makingPlace, .makingFolder, .querying, .sendingChunk, .readingBack:
            parts.bytes(of: stored)
        }
    }

    var stage: Int64 { storedBytes }

    var nameIndex: Int {
        switch state {
        case .choosingName(let index), .doubting(let index), .makingPlace(let index), .makingFolder(let index, _, _),
            .querying(let index), .sendingChunk(let index, _), .moving(let index), .queryingPlace(let index, _),
            .queryingTarget(let index, _), .readingBack(let index, _), .checking(let index):
            index
        }
    }

    var removal: WireRequest? {
        switch state {
        case .choosingName, .doubting, .checking: nil
        case .makingPlace, .makingFolder, .querying, .sendingChunk, .moving, .queryingPlace, .queryingTarget, .readingBack:
            place.map { plan.request("DELETE", $0) }
        }
    }
}
