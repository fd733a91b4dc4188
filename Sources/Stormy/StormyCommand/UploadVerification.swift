import BackgroundCommands
import BackgroundTransfer
import Foundation
import ProcessSupport
import Stormy

/// Checks whether servers still have the uploaded photos.
struct UploadVerification {
    /// An element of `upload --verify --json`. For a file without a receipt, `id` and `url` are null.
    private struct Report: Encodable {
        let id: OrNull<String>
        let file: OrNull<String>
        let url: OrNull<String>
        let finding: String
        let detail: String
    }

    let store: StormyStore

    init(store: StormyStore) { self.store = store }

    /// Verifies uploads, and prints the results.
    ///
    /// - Parameters:
    ///   - files: The files to verify. If the array is empty, all files are verified.
    ///   - destination: The name of the destination whose photos are verified. `nil` for all destinations.
    func run(_ files: [String], at destination: String? = nil, json: Bool) async throws {
        if let destination { _ = try Destinations().named(destination) }
        let names = files.map(PathName.canonical)
        let wanted = Set(names)
        var problem = FirstProblem()
        let known = try store.photos().filter { photo in
            destination.map { photo.isForDestination($0) ?? false } ?? true
        }
        let photos = known.bySubmission
        let receipts = try BackgroundTransfers.all().filter { transfer in
            transfer.receipt != nil
                && (wanted.isEmpty || transfer.file.map { wanted.contains(.canonical($0)) } ?? false)
                && (destination == nil || transfer.submission.map { photos[$0] != nil } ?? false)
        }
        let uploads = Self.newest(receipts)
        let proven = Set(uploads.compactMap(\.file).map(PathName.canonical))
        var missing = wanted.subtracting(proven)
        // Receipts are stored in the transfers' rows. A row is kept for at least a month, and is lost if the ledger is lost.
        let unproven = Self.photosWithoutReceipt(known, receipts)
        let unprovenNames = Set(unproven.compactMap { $0.path.map(PathName.canonical) })
        // A file with a receipt can have another upload without a receipt, for example to another destination.
        missing.formUnion(unprovenNames.intersection(wanted))
        var reports: [Report] = []
        for (position, name) in names.enumerated() where missing.remove(name) != nil {
            let path = PathName.absolute(files[position])
            let hasNoReceipt = unprovenNames.contains(name)
            let absence = destination.map { "no upload of this file to \($0)" } ?? "no upload of this file"
            let failure =
                hasNoReceipt
                ? CommandFailure(
                    .unavailable,
                    "\(path) was uploaded, but the receipt of the upload was removed. "
                        + "To upload the file again: stormy upload --again")
                : CommandFailure(
                    .notFound,
                    "\(path): \(absence) is recorded on this computer")
            problem.report(failure, at: position)
            reports.append(
                Report(
                    id: OrNull(nil), file: OrNull(path), url: OrNull(nil), finding: hasNoReceipt ? "noReceipt" : "notUploaded",
                    detail: failure.message))
        }
        if wanted.isEmpty, !unproven.isEmpty {
            Output.note(
                "stormy: \(PhotoRecord.count(unproven.count)) cannot be checked, because the receipts of the uploads were removed"
            )
            problem.add(.unavailable, at: 0)
        } else if wanted.isEmpty, uploads.isEmpty {
            problem.report(CommandFailure(.notFound, "nothing has been uploaded yet"), at: 0)
        }
        let destinations = uploads.isEmpty ? nil : try Destinations()
        for upload in uploads {
            guard let receipt = upload.receipt else { continue }
            let finding: UploadFinding
            if !wanted.isEmpty, Self.isReplaced(upload) {
                finding = .unknown("the file changed after its upload. To upload the new content: stormy upload")
            } else {
                finding = await Self.finding(of: upload) { try destinations?.of(upload, photos)?.asCredential }
            }
            try record(finding, upload)
            let name = upload.file.map { URL(exactPath: $0).lastPathComponent } ?? receipt.url
            let line = "\(name): \(finding.words) (\(receipt.url))".replacingOccurrences(of: "\n", with: " ")
            if !json { Output.line(line) }
            reports.append(
                Report(
                    id: OrNull("\(upload.id)"), file: OrNull(upload.file), url: OrNull(receipt.url), finding: finding.name,
                    detail: finding.words))
            if ![.same, .sameRecord, .sameLength].contains(finding) {
                problem.add(.unavailable, at: upload.file.flatMap { names.firstIndex(of: .canonical($0)) } ?? 0)
            }
        }
        if json { try Output.json(reports) }
        try problem.throwIfAny()
    }

    /// Returns whether a file has other content than its upload. Such a file is not on the server.
    private static func isReplaced(_ upload: BackgroundTransferStatus) -> Bool {
        guard let sent = upload.sourceSHA256, let digest = upload.file.flatMap({ PhotoOriginal.digest(of: $0) }) else {
            return false
        }
        return digest != sent
    }

    /// Asks the server about an upload. An error is the finding of this upload, so that the other uploads are still verified.
    private static func finding(
        of upload: BackgroundTransferStatus, _ credential: () throws -> BackgroundTransfers.Credential?
    ) async -> UploadFinding {
        do {
            return try await BackgroundTransfers.verifyUpload(upload.id, credential: credential())
        } catch {
            return .unreachable(CommandFailure(ofStormy: error).message)
        }
    }

    /// Returns the uploaded photos without a receipt, except photos that were later replaced at the same address.
    private static func photosWithoutReceipt(
        _ photos: [PhotoRecord], _ receipts: [BackgroundTransferStatus]
    ) -> [PhotoRecord] {
        let submissions = Set(receipts.compactMap(\.submission))
        let addresses = Set(receipts.compactMap(\.receipt?.url))
        return photos.filter { photo in
            photo.state == .completed && photo.path != nil && !(photo.submission.map(submissions.contains) ?? false)
                && !(photo.remoteURL.map(addresses.contains) ?? false)
        }
    }

    /// Returns the newest transfer of each file. If several uploads had the same address, the server has the content of the
    /// newest upload.
    private static func newest(_ uploads: [BackgroundTransferStatus]) -> [BackgroundTransferStatus] {
        func place(_ upload: BackgroundTransferStatus) -> [PathName?] {
            [upload.file.map(PathName.canonical), upload.receipt.map { PathName($0.url) }]
        }
        var latest: [[PathName?]: Int64] = [:]
        for upload in uploads { latest[place(upload)] = upload.id }
        return uploads.filter { latest[place($0)] == $0.id }
    }

    /// Marks a photo as lost if the server does not have it, so that the photo can be uploaded again.
    private func record(_ finding: UploadFinding, _ upload: BackgroundTransferStatus) throws {
        switch finding {
        case .same, .sameRecord, .sameLength, .unknown, .unreachable: return
        case .gone, .differs: break
        }
        try store.photoWasLost(upload.submission, message: finding.words)
    }
}

extension UploadFinding {
    var words: String {
        switch self {
        case .same: "the file is correct (the bytes were read back)"
        case .sameRecord: "the file is correct by the server's SHA-1 (the bytes were not read back)"
        case .sameLength: "the file has the correct length by the server's record (the bytes were not read back)"
        case .differs: "the file is DIFFERENT on the server"
        case .gone: "the file is MISSING on the server. Upload the file again"
        case .unknown(let why): "the file cannot be checked: \(why)"
        case .unreachable(let why): "the file could not be checked now: \(why)"
        }
    }

    /// The name in the output for scripts.
    var name: String {
        switch self {
        case .same: "same"
        case .sameRecord: "sameRecord"
        case .sameLength: "sameLength"
        case .differs: "differs"
        case .gone: "gone"
        case .unknown: "unknown"
        case .unreachable: "unreachable"
        }
    }
}
