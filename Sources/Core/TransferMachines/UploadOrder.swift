import Foundation

/// What an app ordered: the file of an upload, and the protocol. The ledger stores it as JSON in a column of the transfer's row.
package struct UploadOrder: Codable, Equatable, Sendable {
    package var method: UploadKind
    /// The requested name on the server. If it is taken, `name-1.jpg` and so on.
    package var fileName: String
    /// Bytes of the snapshot, which never changes.
    package var byteCount: Int64
    /// Unique to this transfer (letters and digits are used): names the temporary file.
    package var token: String
    /// The furthest it came, as ``UploadMachine`` counts it: looking again after a failed step is no progress.
    package var furthest: Int?
    /// Media type of the file.
    package var contentType: String?
    /// Name of the form's field (multipart).
    package var field: String?
    /// The SHA-1 of the snapshot, in lower-case hex (immich). `nil` if the digest is unknown.
    package var sha1: String?
    /// Of the original.
    package var modifiedAt: Date?
    /// Access to the bucket (s3).
    package var s3: S3Access?
    /// The configured destination. `nil` if the upload has none.
    package var server: UploadServer?

    package init(method: UploadKind, fileName: String, byteCount: Int64, token: String) {
        self.method = method
        self.fileName = fileName
        self.byteCount = byteCount
        self.token = token
    }

    /// The media type that is sent.
    var mediaType: String { contentType ?? "application/octet-stream" }

    /// The name of the form's field that is sent.
    var fieldName: String { field ?? "file" }

    /// When the photo was last changed, if that can be written: file systems hold years that no protocol has.
    var modificationTime: Date? {
        guard let modifiedAt, (0..<253_402_300_800).contains(modifiedAt.timeIntervalSince1970) else { return nil }
        return modifiedAt
    }
}
