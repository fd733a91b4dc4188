import BackgroundTransfer
import Foundation
import ProcessSupport

/// A line of `transfers`: a transfer of the agent's, or what an app counts among them.
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

    /// What the server has, and how that is known: `answer` (it said so), `length` (it has so many bytes) or `digest`.
    package struct Receipt: Encodable {
        package let url: String
        package let byteCount: Int64
        package let sha256: String
        package let storedAt: Date
        package let verified: String
        package let checkedAt: OrNull<Date>
    }

    package init(_ transfer: BackgroundTransferStatus) {
        id = String(transfer.id)
        session = transfer.session
        kind = transfer.kind.rawValue
        method = transfer.method
        url = OrNull(transfer.url)
        // Held by the app for a good moment.
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
                    checkedAt: OrNull($0.checkedAt))
            })
    }

    /// What is no transfer yet, or none any more.
    package init(id: String, session: String, state: String, file: String?, note: String?) {
        (self.id, self.session, self.state) = (id, session, state)
        (kind, method) = ("upload", "PUT")
        (url, bytesTotal, nextAttemptAt) = (OrNull(nil), OrNull(nil), OrNull(nil))
        (bytesDone, bytesOnWire, attempts) = (0, 0, 0)
        (error, sha256, sourceSha256, receipt) = (OrNull(nil), OrNull(nil), OrNull(nil), OrNull(nil))
        (self.file, self.note) = (OrNull(file), OrNull(note))
    }

    /// For people.
    ///
    /// - Parameter name: what they know it by; `nil`: its file, or its address.
    package func line(name: String? = nil) -> String {
        var parts = [id, kind, state, name ?? self.name]
        if let total = bytesTotal.value, total > 0 {
            parts.append("\(Output.bytes(bytesDone)) of \(Output.bytes(total)) (\(bytesDone * 100 / total) %)")
        }
        if let next = nextAttemptAt.value { parts.append("next attempt \(Output.relative(next))") }
        if let error = error.value { parts.append(error.message) }
        if let note = note.value { parts.append(note) }
        // A name that a server chose must not look like rows of its own.
        return Output.oneLine(parts.joined(separator: "  "))
    }

    /// Of an address without a file what tells a person which it is; `--verbose` and `--json` have all of it but its secrets.
    private var name: String {
        if let file = file.value { return URL(exactPath: file).lastPathComponent }
        guard let whole = url.value, whole.count > Self.longestName, let host = URLComponents(string: whole)?.host else {
            return url.value ?? ""
        }
        return "\(host)/\u{2026}\(whole.suffix(max(8, Self.longestName - host.count - 2)))"
    }

    /// Characters of an address beside all else that a line says.
    private static let longestName = 56

    /// What ``line(name:)`` leaves out: the whole addresses and paths.
    package var details: [String] {
        let places = [
            ("from", kind == "download" ? url.value : file.value), ("to", kind == "download" ? file.value : url.value),
            ("stored at", receipt.value?.url),
        ]
        return places.compactMap { label, place in
            place.map { "    \(label) " + Output.oneLine($0) }
        }
    }
}
