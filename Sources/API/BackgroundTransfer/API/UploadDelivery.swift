import TransferMachines

/// What opens an S3 bucket. Kept in the ledger, which only its owner can read, until the upload ends. Beyond Apple.
public typealias S3Access = TransferMachines.S3Access

/// The configured destination of an upload. Beyond Apple.
public typealias UploadServer = TransferMachines.UploadServer

/// A way of uploading, with what it wants to know besides the address. Beyond Apple.
public typealias UploadWay = TransferMachines.UploadWay

/// How an upload task puts its file on the server. Beyond Apple.
public struct UploadDelivery: Sendable, Equatable {
    /// How the file is delivered, and to what kind of server.
    public var way: UploadWay
    /// Wished for on the server; `nil`: the request says it.
    public var fileName: String?
    /// Media type, for the ways that tell it.
    public var contentType: String?

    /// A delivery from its parts, for a way that was read from a configuration.
    public init(_ way: UploadWay, fileName: String?, contentType: String? = nil) {
        (self.way, self.fileName, self.contentType) = (way, fileName, contentType)
    }

    /// One request with the file as its body.
    public static let plain = UploadDelivery(UploadWay(.plain), fileName: nil)

    /// WebDAV: PUT to a temporary name in the collection at the request's URL, checked, then MOVE to this name (or the next free one):
    /// no half file ever stands under a final name.
    public static func webdav(fileName: String) -> Self { Self(UploadWay(.webdav), fileName: fileName) }

    /// One PUT to this name (or the next free one) in the collection at the request's URL; to a URL with a query (presigned) exactly as
    /// it stands.
    public static func put(fileName: String) -> Self { Self(UploadWay(.put), fileName: fileName) }

    /// One POST of a form (`multipart/form-data`) to the request's URL, with the file in this field. A server that does not know
    /// `Idempotency-Key` has the file twice if its answer is lost.
    public static func form(field: String, fileName: String, contentType: String) -> Self {
        Self(UploadWay(.multipart, field: field), fileName: fileName, contentType: contentType)
    }

    /// tus 1.0.0 at the request's URL: goes on where it was cut, byte by byte.
    public static func tus(fileName: String, contentType: String) -> Self {
        Self(UploadWay(.tus), fileName: fileName, contentType: contentType)
    }

    /// Resumable uploads of the IETF (draft-ietf-httpbis-resumable-upload, interop versions 8, 6, 5 and 3) at the request's URL: goes on
    /// where it was cut, byte by byte.
    public static func resumable(fileName: String, contentType: String) -> Self {
        Self(UploadWay(.resumable), fileName: fileName, contentType: contentType)
    }

    /// An object of this name (or the next free one) in an S3 bucket; from 5 MiB on in parts, and parts that are there are not sent
    /// again.
    public static func s3(fileName: String, contentType: String, access: S3Access) -> Self {
        Self(UploadWay(.s3, s3: access), fileName: fileName, contentType: contentType)
    }

    /// Chunks (version 2) put together under this name (or the next free one) in the folder of Nextcloud's at the request's URL,
    /// `…/remote.php/dav/files/USER/FOLDER/`.
    public static func nextcloud(fileName: String) -> Self { Self(UploadWay(.nextcloud), fileName: fileName) }

    /// An asset of the Immich at the request's URL; one that it has already is a success.
    public static func immich(fileName: String, contentType: String) -> Self {
        Self(UploadWay(.immich), fileName: fileName, contentType: contentType)
    }
}
