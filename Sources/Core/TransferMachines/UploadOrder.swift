import Foundation

/// The description of an upload that an app submitted: the file and the protocol. The ledger stores this description as JSON in a
/// column of the transfer's row.
package struct UploadOrder: Codable, Equatable, Sendable {
    package var method: UploadKind
    /// The requested name on the server. If the name is taken, `name-1.jpg`, `name-2.jpg` and so on are used.
    package var fileName: String
    /// The number of bytes of the snapshot, which never changes.
    package var byteCount: Int64
    /// A text that only this transfer has. The name of the temporary file consists of the letters and digits of this value.
    package var token: String
    /// The highest progress value of the ``UploadMachine``. If a failed step is checked again, the check does not count as
    /// progress.
    package var furthest: Int?
    /// The media type of the file.
    package var contentType: String?
    /// The name of the form's field (only for `multipart`).
    package var field: String?
    /// The SHA-1 of the snapshot, in lower-case hexadecimal (only for `immich`). `nil` if the digest is unknown.
    package var sha1: String?
    /// The modification date of the original file.
    package var modifiedAt: Date?
    /// The access to the bucket (only for `s3`).
    package var s3: S3Access?
    /// The destination that the user configured. `nil` if the upload has no configured destination.
    package var server: UploadServer?
    /// The files that belong to this file. `nil` if no other file belongs to it.
    package var company: UploadCompany?
    /// The time at which the photo was taken. `nil` if the app did not set a time.
    package var takenAt: PhotoTime?
    /// `true` if the upload only checks whether the server has the file, and never sends the file. `nil` means `false`.
    package var onlyChecks: Bool?

    package init(method: UploadKind, fileName: String, byteCount: Int64, token: String) {
        self.method = method
        self.fileName = fileName
        self.byteCount = byteCount
        self.token = token
    }

    /// The media type that is sent. If the app set no type, a general type is sent.
    var mediaType: String { contentType ?? "application/octet-stream" }

    /// The name of the form field that is sent. If the app set no name, the name is `file`.
    var fieldName: String { field ?? "file" }

    /// The photo's modification date. `nil` if protocols cannot express the date.
    var modificationTime: Date? { Self.expressible(modifiedAt) }

    /// The time at which the photo was taken, or the modification date. `nil` if protocols cannot express the date.
    var creationTime: Date? { Self.expressible(takenAt?.date) ?? modificationTime }

    /// Returns `nil` for a date that protocols cannot express. File systems and cameras allow other years than protocols.
    private static func expressible(_ date: Date?) -> Date? {
        guard let date, (0..<253_402_300_800).contains(date.timeIntervalSince1970) else { return nil }
        return date
    }
}
