import Foundation
import TransferMachines

/// The proof that a server has stored an upload.
package struct UploadReceipt: Codable, Sendable, Equatable {
    /// The address of the stored file, without secrets.
    package var url: String
    package var byteCount: Int64
    /// The digest of the sent bytes in hexadecimal digits.
    package var sha256: String
    package var storedAt: Date
    /// The kind of proof that the server has the file.
    package var proof: UploadProof
    /// The time of the last check that found the file on the server. `nil` if the file was not checked after the upload.
    package var checkedAt: Date?
    /// The reason why the file is not stored as requested, for example under another name. `nil` if the file is stored as
    /// requested.
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
