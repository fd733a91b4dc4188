import BackgroundTransfer
import Foundation
import ProcessSupport

/// A row in the output of the command `transfers`. The row describes a transfer of the agent, or an item that an app lists
/// together with its transfers.
package struct TransferReport: Encodable {
    package struct Trouble: Encodable {
        package let code: Int
        package let message: String
    }

    package let id: String
    package let session: String
    package let kind: String
    package let method: String
    package let url: OrNull<String>
    package let state: String
    package let bytesDone: Int64
    package let bytesTotal: OrNull<Int64>
    package let bytesOnWire: Int64
    package let attempts: Int
    package let nextAttemptAt: OrNull<Date>
    package let error: OrNull<Trouble>
    package let file: OrNull<String>
    package let sha256: OrNull<String>
    package let sourceSha256: OrNull<String>
    package let note: OrNull<String>
    package let receipt: OrNull<Receipt>

    /// The address of the uploaded file on the server, and the kind of proof that the server has the complete file. `answer`
    /// means that the server confirmed the upload, and `length` means that the sizes are equal. `content` means that some parts
    /// of the two files are equal, and `digest` means that the digests are equal.
    package struct Receipt: Encodable {
        package let url: String
        package let byteCount: Int64
        package let sha256: String
        package let storedAt: Date
        package let verified: String
        package let checkedAt: OrNull<Date>
        package let takenAt: OrNull<Date>
        package let takenAtSource: OrNull<String>
    }

    package init(_ transfer: BackgroundTransferStatus) {
        id = String(transfer.id)
        session = transfer.session
        kind = transfer.kind.rawValue
        method = transfer.method
        url = OrNull(transfer.url)
        // The state "held" means that the app suspended the transfer.
        state = transfer.isHeld ? "held" : transfer.state.rawValue
        bytesDone = transfer.bytesDone
        bytesTotal = OrNull(transfer.bytesTotal)
        bytesOnWire = transfer.bytesOnWire
        attempts = transfer.attempts
        nextAttemptAt = OrNull(transfer.nextAttemptAt)
        error = OrNull(transfer.trouble.map { Trouble(code: $0.code, message: $0.message) })
        file = OrNull(transfer.file)
        sha256 = OrNull(transfer.sha256)
        sourceSha256 = OrNull(transfer.sourceSHA256)
        note = OrNull(transfer.note)
        receipt = OrNull(
            transfer.receipt.map {
                Receipt(
                    url: $0.url, byteCount: $0.byteCount, sha256: $0.sha256, storedAt: $0.storedAt, verified: $0.proof.rawValue,
                    checkedAt: OrNull($0.checkedAt), takenAt: OrNull($0.takenAt), takenAtSource: OrNull($0.takenAtSource))
            })
    }

    /// Creates a row for an item without a transfer, because the transfer does not exist yet or was removed.
    package init(id: String, session: String, state: String, file: String?, note: String?) {
        (self.id, self.session, self.state) = (id, session, state)
        (kind, method) = ("upload", "PUT")
        (url, bytesTotal, nextAttemptAt) = (OrNull(nil), OrNull(nil), OrNull(nil))
        (bytesDone, bytesOnWire, attempts) = (0, 0, 0)
        (error, sha256, sourceSha256, receipt) = (OrNull(nil), OrNull(nil), OrNull(nil), OrNull(nil))
        (self.file, self.note) = (OrNull(file), OrNull(note))
    }

    /// `true` if the transfer has ended, with or without success.
    package var hasEnded: Bool { isDone || state == "failed" }

    /// `true` if the transfer is completed or cancelled, so the user has nothing to do.
    var isDone: Bool { state == "completed" || state == "cancelled" }

    /// Returns identifier, kind, state, name and progress for a row of ``TransferList``.
    func cells(name: String?, speed: Double?) -> [String] {
        let state = state == "awaitingPhoto" ? "needs a photo" : state
        return [id, kind, state, name ?? self.name, progress(speed).joined(separator: ", ")]
    }

    private func progress(_ speed: Double?) -> [String] {
        var parts: [String] = []
        if let total = bytesTotal.value, total > 0 {
            parts.append(
                isDone && bytesDone == total
                    ? Output.bytes(total) : "\(Output.bytes(bytesDone)) of \(Output.bytes(total)) (\(bytesDone * 100 / total) %)")
            if let speed, speed >= 1, total > bytesDone { parts.append(Output.timeLeft(total - bytesDone, at: speed)) }
        }
        if let next = nextAttemptAt.value { parts.append("next attempt \(Output.relative(next))") }
        return parts
    }

    /// The reason why the transfer waits or has failed, and the note about the transfer.
    var remarks: [String] { [error.value?.message, note.value].compactMap { $0 } }

    /// The name of the file, or a short form of the address if the transfer has no file. `--verbose` and `--json` show the
    /// complete address without secrets.
    private var name: String {
        if let file = file.value { return URL(exactPath: file).lastPathComponent }
        guard let whole = url.value, whole.count > Self.longestName, let host = URLComponents(string: whole)?.host else {
            return url.value ?? ""
        }
        return "\(host)/\u{2026}\(whole.suffix(max(8, Self.longestName - host.count - 2)))"
    }

    /// The maximum number of characters of an address in a line.
    private static let longestName = 56

    /// The lines that `--verbose` adds: the complete addresses and paths.
    var details: [String] {
        let places = [
            ("from", kind == "download" ? url.value : file.value), ("to", kind == "download" ? file.value : url.value),
            ("stored at", receipt.value?.url),
        ]
        return places.compactMap { label, place in
            place.map { "\(label) \($0)" }
        }
    }
}
