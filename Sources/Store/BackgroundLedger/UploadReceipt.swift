import Foundation
import TransferMachines

/// What proves that a server has an upload.
package struct UploadReceipt: Codable, Sendable, Equatable {
    /// Where it is, without secrets.
    package var url: String
    package var byteCount: Int64
    /// Hex, of what was sent.
    package var sha256: String
    package var storedAt: Date
    /// How it is known.
    package var proof: UploadProof
    /// Looked at again, later, and still there.
    package var checkedAt: Date?
    /// The reason why the file is stored otherwise than asked. `nil` if it is stored as asked.
    package var remark: String?

    package init(
        url: String, byteCount: Int64, sha256: String, storedAt: Date, proof: UploadProof, checkedAt: Date?, remark: String? = nil
    ) {
        self.url = url
        self.byteCount = byteCount
        self.sha256 = sha256
        self.storedAt = storedAt
        self.proof = proof
        self.checkedAt = checkedAt
        self.remark = remark
    }
}
