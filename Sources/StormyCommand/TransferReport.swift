import BackgroundLedger
import BackgroundRuntime
import Foundation
import Stormy

/// A line of `transfers`: a transfer of the agent's, a waiting photo job or a held photo.
struct TransferReport: Encodable {
    struct Trouble: Encodable {
        let code: Int
        let message: String
    }

    let id: String
    let session: String
    let kind: String
    let method: String
    let url: String?
    let state: String
    let bytesDone: Int64
    let bytesTotal: Int64?
    let bytesOnWire: Int64
    let attempts: Int
    let nextAttemptAt: Date?
    let error: Trouble?
    let file: String?
    let sha256: String?
    let sourceSha256: String?
    let note: String?

    enum CodingKeys: String, CodingKey {
        case id, session, kind, method, url, state, bytesDone, bytesTotal, bytesOnWire, attempts, nextAttemptAt, error, file
        case sha256, sourceSha256, note
    }

    /// Every key is there, null when there is nothing to say.
    func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(id, forKey: .id)
        try container.encode(session, forKey: .session)
        try container.encode(kind, forKey: .kind)
        try container.encode(method, forKey: .method)
        try container.encode(url, forKey: .url)
        try container.encode(state, forKey: .state)
        try container.encode(bytesDone, forKey: .bytesDone)
        try container.encode(bytesTotal, forKey: .bytesTotal)
        try container.encode(bytesOnWire, forKey: .bytesOnWire)
        try container.encode(attempts, forKey: .attempts)
        try container.encode(nextAttemptAt, forKey: .nextAttemptAt)
        try container.encode(error, forKey: .error)
        try container.encode(file, forKey: .file)
        try container.encode(sha256, forKey: .sha256)
        try container.encode(sourceSha256, forKey: .sourceSha256)
        try container.encode(note, forKey: .note)
    }

    static func identifier(of photo: PhotoRecord) -> String { "photo-\(photo.id ?? 0)" }

    init(_ transfer: TransferRecord) {
        id = String(transfer.id ?? 0)
        session = transfer.session
        kind = transfer.kind.rawValue
        method = transfer.method
        url = Self.withoutSecrets(transfer.url)
        state = transfer.state.rawValue
        bytesDone = transfer.bytesDone
        bytesTotal = transfer.bytesTotal
        bytesOnWire = transfer.bytesOnWire
        attempts = transfer.attempts
        nextAttemptAt = transfer.nextAttemptAt
        error = transfer.errorMessage.map { Trouble(code: transfer.errorCode ?? -1, message: $0) }
        file = transfer.sourceName ?? transfer.file
        sha256 = transfer.sha256
        sourceSha256 = transfer.sourceSHA256
        note = transfer.note
    }

    init(_ photo: PhotoRecord) {
        id = Self.identifier(of: photo)
        session = PhotoUploads.sessionIdentifier
        kind = "upload"
        method = "PUT"
        url = nil
        state = photo.state.rawValue
        bytesDone = 0
        bytesTotal = nil
        bytesOnWire = 0
        attempts = 0
        nextAttemptAt = nil
        error = nil
        file = photo.path
        sha256 = nil
        sourceSha256 = nil
        note = photo.message
    }

    /// A password in an address is nobody's business here.
    private static func withoutSecrets(_ url: String) -> String {
        guard var components = URLComponents(string: url), components.password != nil || components.user != nil else {
            return url
        }
        components.user = nil
        components.password = nil
        return components.string ?? url
    }

    /// Photos that are with the agent are its transfers; the others stand for themselves.
    static func all(_ store: StormyStore) throws -> [TransferReport] {
        let transfers = try AppRuntime.shared.ledger().read { try $0.transfers() }
        let photos = try store.photos().filter {
            $0.transfer == nil && ($0.state == .awaitingPhoto || $0.state == .held || $0.state == .cancelled)
        }
        return transfers.map(TransferReport.init) + photos.map(TransferReport.init)
    }
}
