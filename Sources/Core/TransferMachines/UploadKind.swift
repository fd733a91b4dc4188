/// The kinds of upload. The ledger and the configuration use the names of the kinds.
///
/// This type defines all differences between the kinds except the protocols. A new kind needs a case of this type and a separate
/// file with its protocol, which ``UploadMachine`` uses. A new kind also needs the API for authors (`UploadDelivery.swift` of
/// BackgroundTransfer). If the kind requires more than an address and a password, `Destinations.swift` of StormyCommand reads its
/// configuration.
public enum UploadKind: String, Codable, Sendable, CaseIterable {
    /// The request that the app prepared, with the file as its body. No upload protocol is used.
    case plain
    /// A single PUT to the final name, for servers without MOVE. A presigned address, which has a query, is used unchanged.
    case put
    /// A PUT to a temporary name, followed by a MOVE, so that an incomplete file never has the final name.
    case webdav
    /// A single POST of a form that contains the file. The form is equal to a form that a browser sends.
    case multipart
    /// The protocol tus 1.0.0. After an interruption, the upload can continue at every byte.
    case tus
    /// The resumable uploads of the IETF (draft-ietf-httpbis-resumable-upload).
    case resumable
    /// The protocol of Amazon's S3 and of compatible servers. Files above 5 MiB are sent in parts.
    case s3
    /// Nextcloud's chunked upload (version 2).
    case nextcloud
    /// The form of an Immich server. Immich identifies each photo by its SHA-1.
    case immich

    /// The kinds that a configured destination can have.
    public static let protocols = allCases.filter { $0 != .plain }

    /// `true` if the server receives the file's media type.
    public var tellsContentType: Bool {
        switch self {
        case .plain, .webdav, .put, .nextcloud: false
        case .multipart, .tus, .resumable, .s3, .immich: true
        }
    }

    /// `true` if the server identifies a file by its SHA-1.
    public var needsSHA1: Bool { self == .immich }

    /// `true` if an interruption does no harm, because the upload can check what the server has. For `plain`, the method of the
    /// request also matters.
    public var mayBeCut: Bool { self != .multipart }

    /// `true` if the server stores files in folders that the upload can choose.
    package var hasFolders: Bool {
        switch self {
        case .webdav, .put, .s3, .nextcloud: true
        case .plain, .multipart, .tus, .resumable, .immich: false
        }
    }

    /// `true` if the server is a library of photos that links a photo with its video and with its XMP file. The video is uploaded
    /// first, and the form of the photo contains the identifier of the video and the XMP file.
    package var isPhotoLibrary: Bool { self == .immich }

    /// `true` if the protocol can check whether the server has a file, without a receipt and without a change of the server.
    package var canOnlyCheck: Bool {
        switch self {
        case .webdav, .put, .s3, .nextcloud, .immich: true
        case .plain, .multipart, .tus, .resumable: false
        }
    }

    /// `true` if the upload chooses the file's name although some servers do not report whether a name is taken. The upload then
    /// needs the names of this computer's other uploads.
    package var choosesNames: Bool { self == .put || self == .s3 }

    /// Returns whether the server may have the file under its final name if no response to this step arrived. The result is
    /// `false` for tus and resumable uploads, because the place for the file on the server can be removed.
    package func mayBeOnServer(at step: UploadMemory.Step) -> Bool {
        switch self {
        case .webdav, .nextcloud: step == .move
        case .put, .multipart, .immich, .s3: step == .put || step == .check || step == .move
        case .plain, .tus, .resumable: false
        }
    }

    /// A setting of a destination, in addition to the address.
    package enum Setting: Sendable {
        case user, bucket, region, accessKey, field
    }

    /// The settings that a destination of this kind can have, in the order in which a command asks for them.
    package var settings: [Setting] {
        switch self {
        case .plain, .immich: []
        case .s3: [.bucket, .region, .accessKey]
        case .multipart: [.field, .user]
        case .webdav, .put, .nextcloud, .tus, .resumable: [.user]
        }
    }

    /// A secret of a destination.
    package enum Secret: Sendable {
        case password, token, secretKey
    }

    /// The secret that a destination of this kind has. `nil` if the kind needs no secret.
    ///
    /// - Parameter hasUser: `true` if the destination has a user.
    package func secret(hasUser: Bool) -> Secret? {
        switch self {
        case .plain: nil
        case .immich: .token
        case .s3: .secretKey
        case .webdav, .put, .multipart, .nextcloud, .tus, .resumable: hasUser ? .password : nil
        }
    }

    /// `true` if the server is the user's own photo library, which usually shows where photos were taken.
    package var isOwnLibrary: Bool { self == .immich || self == .nextcloud }

    /// `true` if the protocol can remove a stored file.
    package var canRemoveFiles: Bool { self != .multipart }

    /// An address, as an example for the user.
    package var exampleAddress: String {
        switch self {
        case .immich: "https://immich.example.org"
        case .nextcloud: "https://cloud.example.org/remote.php/dav/files/me/Storms/"
        case .s3: "https://s3.eu-central-1.amazonaws.com/album/"
        case .multipart: "https://forms.example.org/upload"
        case .tus: "https://tus.example.org/files/"
        case .resumable: "https://uploads.example.org/photos/{name}"
        case .plain, .webdav, .put: "https://dav.example.org/photos/"
        }
    }

    /// The names of the headers that the protocol sets, in lower case.
    var ownHeaders: [String] {
        switch self {
        case .plain: []
        case .webdav, .put: ["destination", "overwrite", "if-none-match", "if-match", "depth"]
        case .multipart: ["idempotency-key"]
        case .tus:
            [
                "tus-resumable", "upload-length", "upload-offset", "upload-metadata", "upload-checksum", "upload-defer-length",
                "upload-concat",
            ]
        case .resumable: ["upload-complete", "upload-incomplete", "upload-draft-interop-version", "repr-digest"]
        case .s3: []
        case .nextcloud: ["oc-total-length", "oc-checksum", "x-oc-mtime"]
        case .immich: ["x-immich-checksum"]
        }
    }

    /// The request by which a later check finds out whether a server still has a file.
    public enum LaterQuestion: Equatable, Sendable {
        /// An unsigned request for the file.
        case file
        /// A signed request for the file.
        case signedFile
        /// A request for the original of a photo in Immich. The last part of the address in the receipt is the photo's
        /// identifier. If the address contains no identifier, the check searches Immich's database for the SHA-1.
        case immichAsset
        /// A request for the number of stored bytes, as tus defines it.
        case offset
        /// No request is possible, for the reason in the associated value.
        case nothing(String)
    }

    /// Returns the request for a later check of a stored file.
    ///
    /// - Parameters:
    ///   - asked: The address of the upload.
    ///   - stored: The address of the file that the server reported.
    public func laterQuestion(asked: String, stored: String) -> LaterQuestion {
        switch self {
        case .plain: .nothing("the server does not report the address of the stored file")
        case .webdav, .nextcloud: .file
        case .put:
            // The query of a presigned address is removed when the upload ends. A file in a folder has another address than the
            // folder.
            asked.contains("?") || stored == asked
                ? .nothing("a presigned address allows the upload, but no check of the stored file") : .file
        case .multipart: stored == asked ? .nothing("the server did not report the address of the stored file") : .file
        case .tus: .offset
        case .resumable: .nothing("the protocol has no request to check a complete file")
        case .s3: .signedFile
        case .immich: .immichAsset
        }
    }
}

/// A kind of upload, together with the values that this kind needs in addition to the address.
public struct UploadWay: Equatable, Sendable {
    public var kind: UploadKind
    /// The name of the form field that contains the file (only for `multipart`).
    public var field: String?
    /// The access key, the region and the bucket name (only for the kind `s3`).
    public var s3: S3Access?
    /// The configured destination: its name in messages, and its certificate authorities. `nil` if the app has no configured
    /// destinations.
    public var server: UploadServer?

    public init(_ kind: UploadKind, field: String? = nil, s3: S3Access? = nil, server: UploadServer? = nil) {
        (self.kind, self.field, self.s3, self.server) = (kind, field, s3, server)
    }
}
