import BackgroundTransfer
import TransferMachines

/// The recorded uploads to one destination, by the content of the files.
struct KnownUploads: Sendable {
    /// The records of each copy, by the digest of the copy.
    private var photos: [String: [PhotoRecord]] = [:]
    private let copies: [String: [String]]
    private let states: [String: BackgroundTransferStatus]

    init(_ store: StormyStore, _ destination: PhotoDestination, _ names: Set<String>) throws {
        copies = try store.sentCopies().merging(Self.copiesInLedger()) { $0 + $1 }
        // The identities of thousands of photos are equal, so each identity is compared once.
        var isMeant: [String: Bool] = [:]
        var queued: [PhotoRecord] = []
        for photo in try store.photos() {
            guard let digest = photo.digest, let identity = photo.destination else { continue }
            if isMeant[identity] == nil { isMeant[identity] = destination.isMeant(by: identity, among: names) }
            guard isMeant[identity] == true else { continue }
            photos[digest, default: []].append(photo)
            if photo.state == .queued { queued.append(photo) }
        }
        states = try PhotoUploads.transfers(of: queued)
    }

    /// Returns the copies of photos that an earlier version queued. That version did not record copies in the store.
    private static func copiesInLedger() throws -> [String: [String]] {
        try BackgroundTransfers.all().reduce(into: [:]) { copies, transfer in
            guard let original = transfer.sourceSHA256, let copy = transfer.copySHA256, original != copy else { return }
            copies[original, default: []].append(copy)
        }
    }

    /// Returns the records of a file. A completed upload is the first record.
    private func records(_ digest: String) -> [PhotoRecord] {
        func rank(_ photo: PhotoRecord) -> Int {
            switch photo.state {
            case .completed: 0
            case .queued: 1
            case .held: 2
            case .failed: 3
            case .lost: 4
            case .cancelled, .awaitingPhoto: 5
            }
        }
        return ([digest] + (copies[digest] ?? [])).flatMap { photos[$0] ?? [] }.sorted { rank($0) < rank($1) }
    }

    /// Returns whether a file was given to the destination before, with any result.
    func hasRecord(_ digest: String) -> Bool { !records(digest).isEmpty }

    func uploaded(_ digest: String) -> PhotoRecord? { records(digest).first { $0.state == .completed } }

    func finding(_ digest: String) -> PhotoAudit.Finding {
        guard let photo = records(digest).first else { return .neverUploaded }
        let message = photo.message ?? "the reason was not recorded"
        switch photo.state {
        case .completed: return .uploaded(url: photo.remoteURL, isProven: false, isChanged: photo.digest != digest)
        case .queued: return onItsWay(photo)
        case .held: return .held(message)
        case .failed: return .failed(message)
        case .lost, .cancelled, .awaitingPhoto: return .neverUploaded
        }
    }

    /// Returns the finding for the copy of a file, if the copy is recorded for another file.
    func finding(ofCopy copy: String, of original: String?) -> PhotoAudit.Finding? {
        guard let photo = photos[copy]?.first(where: { $0.state == .completed || $0.state == .queued }) else { return nil }
        return photo.state == .completed
            ? .uploaded(url: photo.remoteURL, isProven: false, isChanged: copy != original)
            : onItsWay(photo)
    }

    private func onItsWay(_ photo: PhotoRecord) -> PhotoAudit.Finding {
        let transfer = photo.submission.flatMap { states[$0] }
        return .onItsWay(transfer?.state == .paused ? "paused" : transfer?.trouble?.message)
    }
}
