/// The kinds of upload, with the names that they have in rows and in the configuration.
///
/// The differences between the kinds, besides the protocol itself, are defined here. A new kind needs a case here and its rules (a separate
/// file, created in ``UploadMachine``). It also needs the API for authors (`UploadDelivery.swift` of BackgroundTransfer). If the kind
/// requires more than an address and a password, its configuration is read in `Destinations.swift` of StormyCommand.
public enum UploadKind: String, Codable, Sendable, CaseIterable {
    /// The request as given, with the file as its body, without a protocol.
    case plain
    /// A single PUT to the final name, for servers without MOVE; an address with a query (presigned) is used unchanged.
    case put
    /// PUT under a temporary name, then MOVE, so that an incomplete file never has the final name.
    case webdav
    /// A single POST of a form that contains the file, as a browser sends it.
    case multipart
    /// tus 1.0.0, resumable at every byte.
    case tus
    /// Resumable uploads of the IETF (draft-ietf-httpbis-resumable-upload).
    case resumable
    /// Amazon's S3 and compatible servers, in parts for files from 5 MiB.
    case s3
    /// Nextcloud's protocol for chunks (version 2).
    case nextcloud
    /// Immich's form. Immich identifies each photo by its SHA-1.
    case immich

    /// The kinds that a destination can have.
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

    /// `true` if an interruption does no harm. The server can then be asked how much it has, or (plain) the request's method decides.
    public var mayBeCut: Bool { self != .multipart }

    /// `true` if the upload chooses the file's name and cannot see the taken names on every server. The upload then has to know this
    /// computer's other uploads.
    package var choosesNames: Bool { self == .put || self == .s3 }

    /// Returns whether the server may have the file under its name while the response to this step is unknown. For tus and resumable
    /// uploads the place on the server is removed.
    package func mayBeOnServer(at step: UploadMemory.Step) -> Bool {
        switch self {
        case .webdav, .nextcloud: step == .move
        case .put, .multipart, .immich, .s3: step == .put || step == .check || step == .move
        case .plain, .tus, .resumable: false
        }
    }

    /// The headers that the protocol sets, in lower case.
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

    /// The request by which a server can later be asked for a file that it accepted.
    public enum LaterQuestion: Equatable, Sendable {
        /// A request for the file.
        case file
        /// A signed request for the file.
        case signedFile
        /// A request for the original of a photo in Immich, whose number is the last part of the receipt's address. Without a number,
        /// Immich is asked for its record of the SHA-1.
        case immichAsset
        /// A request for the number of stored bytes, as in tus.
        case offset
        /// No request is possible, for this reason.
        case nothing(String)
    }

    /// Returns the request for a stored file.
    ///
    /// - Parameters:
    ///   - asked: The address of the upload.
    ///   - stored: The address of the file as the server reported it.
    public func laterQuestion(asked: String, stored: String) -> LaterQuestion {
        switch self {
        case .plain: .nothing("a plain request does not reveal its place")
        case .webdav, .nextcloud: .file
        case .put: asked.contains("?") ? .nothing("a presigned address does not allow checks") : .file
        case .multipart: stored == asked ? .nothing("the server did not say where it put it") : .file
        case .tus: .offset
        case .resumable: .nothing("the protocol has no question for what is whole")
        case .s3: .signedFile
        case .immich: .immichAsset
        }
    }
}

/// A kind of upload, with the values that it needs besides the address.
public struct UploadWay: Equatable, Sendable {
    public var kind: UploadKind
    /// The name of the form's field (multipart).
    public var field: String?
    /// The access to the bucket (s3).
    public var s3: S3Access?
    /// The configured destination, with its name in messages and its certificate authorities; `nil` if the app has no configured
    /// destinations.
    public var server: UploadServer?

    public init(_ kind: UploadKind, field: String? = nil, s3: S3Access? = nil, server: UploadServer? = nil) {
        (self.kind, self.field, self.s3, self.server) = (kind, field, s3, server)
    }
}
