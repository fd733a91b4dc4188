import TransferMachines

/// The credentials of an S3 bucket. The agent's database (ledger) stores the credentials until the upload ends. Other users of
/// this machine cannot read the ledger. Apple's API has no equivalent.
public typealias S3Access = TransferMachines.S3Access

/// The server of an upload, as the user configured it. Apple's API has no equivalent.
public typealias UploadServer = TransferMachines.UploadServer
/// A line that a text file must contain while an upload sends requests. Apple's API has no equivalent.
public typealias RequiredLine = TransferMachines.RequiredLine

/// An upload method, with the information that the method needs in addition to the address. Apple's API has no equivalent.
public typealias UploadWay = TransferMachines.UploadWay

/// The way in which an upload task stores its file on the server. Apple's API has no equivalent.
public struct UploadDelivery: Sendable, Equatable {
    /// The method of the delivery, and the kind of server.
    public var way: UploadWay
    /// The file name that the file should get on the server. `nil` if the URL of the request contains the name.
    public var fileName: String?
    /// The media type of the file. Only some methods send the media type.
    public var contentType: String?
    /// `true` if the task only checks whether the server already has the file, and never sends the file. The default is `false`.
    ///
    /// The task succeeds if the server has a file with this name or a numbered name, and with equal content. The file is read
    /// back if the server does not report a digest. The task fails with `URLError.fileDoesNotExist` if the server does not have
    /// the file. The task fails with `URLError.noPermissionsToReadFile` if the server or the method cannot answer the question.
    public var onlyChecks = false
    /// The files that belong to the file.
    package var company: UploadCompany?
    /// The time at which the photo was taken.
    package var takenAt: PhotoTime?

    /// Makes the upload wait until the upload with this stored submission key is complete.
    ///
    /// - Parameter asVideo: `true` if the other upload is a photo, and this file belongs to it.
    package mutating func follow(_ key: String, asVideo: Bool) {
        var changed = company ?? UploadCompany()
        (changed.leader, changed.isVideo) = (key, asVideo)
        company = changed
    }

    /// Connects the upload with another upload that is complete.
    ///
    /// - Parameters:
    ///   - name: The requested name of the other file.
    ///   - url: The address at which the server stores the other file.
    package mutating func join(_ name: String, storedAt url: String, asVideo: Bool) {
        var order = UploadOrder(method: way.kind, fileName: fileName ?? "", byteCount: 0, token: "")
        order.company = company ?? UploadCompany()
        order.company?.isVideo = asVideo
        order.join(name, storedAt: url)
        company = order.company
        if fileName != nil { fileName = order.fileName }
    }

    /// Ends the wait of the upload with this stored submission key when this upload is complete.
    package mutating func lead(_ key: String) {
        company = company ?? UploadCompany()
        company?.followers.append(key)
    }

    /// Creates a delivery from an upload method, for example from a method in a configuration file.
    public init(_ way: UploadWay, fileName: String?, contentType: String? = nil) {
        (self.way, self.fileName, self.contentType) = (way, fileName, contentType)
    }

    /// A delivery by one request whose body is the file.
    public static let plain = UploadDelivery(UploadWay(.plain), fileName: nil)

    /// Returns a delivery by WebDAV to the collection at the request's URL. A PUT request stores the file under a temporary name.
    /// After a check, a MOVE request gives the file the requested name (or the next free name). So a file with a final name is
    /// always complete.
    public static func webdav(fileName: String) -> Self { Self(UploadWay(.webdav), fileName: fileName) }

    /// Returns a delivery by one PUT request to the requested name (or the next free name) in the collection at the request's
    /// URL. If the URL has a query (a presigned URL), the PUT request is sent to this URL unchanged.
    public static func put(fileName: String) -> Self { Self(UploadWay(.put), fileName: fileName) }

    /// Returns a delivery by one POST request with a form (`multipart/form-data`). The given field of the form contains the file.
    /// If the response is lost and the server does not support `Idempotency-Key`, the server can receive the file twice.
    public static func form(field: String, fileName: String, contentType: String) -> Self {
        Self(UploadWay(.multipart, field: field), fileName: fileName, contentType: contentType)
    }

    /// Returns a delivery by the protocol tus 1.0.0 to the request's URL. An interrupted upload continues at the first byte that
    /// the server does not have.
    public static func tus(fileName: String, contentType: String) -> Self {
        Self(UploadWay(.tus), fileName: fileName, contentType: contentType)
    }

    /// Returns a delivery by the resumable uploads of the IETF (draft-ietf-httpbis-resumable-upload, interop versions 8, 6, 5 and
    /// 3) to the request's URL. An interrupted upload continues at the first byte that the server does not have.
    public static func resumable(fileName: String, contentType: String) -> Self {
        Self(UploadWay(.resumable), fileName: fileName, contentType: contentType)
    }

    /// Returns a delivery as an object in an S3 bucket. The object has the requested name (or the next free name). Files larger
    /// than 5 MiB are sent in parts. A part that the server has already stored is not sent again.
    public static func s3(fileName: String, contentType: String, access: S3Access) -> Self {
        Self(UploadWay(.s3, s3: access), fileName: fileName, contentType: contentType)
    }

    /// Returns a delivery in chunks (version 2 of Nextcloud's chunked upload). Nextcloud joins the chunks into a file with the
    /// requested name (or the next free name). The request's URL is the URL of the folder: `…/remote.php/dav/files/USER/FOLDER/`.
    public static func nextcloud(fileName: String) -> Self { Self(UploadWay(.nextcloud), fileName: fileName) }

    /// Returns a delivery as an asset of the Immich server at the request's URL. If Immich already has the asset, the upload
    /// succeeds.
    public static func immich(fileName: String, contentType: String) -> Self {
        Self(UploadWay(.immich), fileName: fileName, contentType: contentType)
    }
}

extension URLSessionUploadTask {
    /// Returns the SHA-256 in hex of the file that ``takeSnapshot(preparing:checking:)`` copied, before the copy was changed.
    package func originalSHA256() throws -> String {
        let taken = try currentSnapshot()
        return taken.originalSHA256 ?? taken.sha256
    }
}
