/// The ways of uploading, by the names that they have in rows and in the configuration.
///
/// Whatever differs from one to the other, besides the protocol itself, is said here. A new one is a case of this, its rules (a file of
/// its own, made in ``UploadMachine``), what an author writes (`UploadDelivery.swift` of BackgroundTransfer) and, where it needs more
/// than an address and a password, what it wants of the configuration (`Destinations.swift` of StormyCommand).
public enum UploadKind: String, Codable, Sendable, CaseIterable {
    /// The request as it stands, with the file as its body: no protocol.
    case plain
    /// One PUT to the final name, for servers without MOVE; to an address with a query (presigned) as it stands.
    case put
    /// PUT under a temporary name, then MOVE: a half file never has the final name.
    case webdav
    /// One POST of a form with the file in it, as a browser sends it.
    case multipart
    /// tus 1.0.0: resumable, byte by byte.
    case tus
    /// Resumable uploads of the IETF (draft-ietf-httpbis-resumable-upload).
    case resumable
    /// Amazon's S3 and what speaks like it: in parts, from 5 MiB on.
    case s3
    /// Nextcloud's own: in chunks (version 2).
    case nextcloud
    /// A form of Immich's, which knows each photo by its SHA-1.
    case immich

    /// Those that a destination can have.
    public static let protocols = allCases.filter { $0 != .plain }

    /// It tells the server the file's media type.
    public var tellsContentType: Bool {
        switch self {
        case .plain, .webdav, .put, .nextcloud: false
        case .multipart, .tus, .resumable, .s3, .immich: true
        }
    }

    /// It names a file by its SHA-1.
    public var needsSHA1: Bool { self == .immich }

    /// Cutting it half-way does no harm: its server can be asked what arrived, or (plain) the request's method decides.
    public var mayBeCut: Bool { self != .multipart }

    /// It chooses a name for the file itself, and not every server lets it see which are taken: it has to know of this computer's other uploads.
    package var choosesNames: Bool { self == .put || self == .s3 }

    /// Returns whether the server may have the file under its name while the response to this step is not known. The place that tus and
    /// resumable uploads have on the server is removed.
    package func mayBeOnServer(at step: UploadMemory.Step) -> Bool {
        switch self {
        case .webdav, .nextcloud: step == .move
        case .put, .multipart, .immich, .s3: step == .put || step == .check || step == .move
        case .plain, .tus, .resumable: false
        }
    }

    /// Headers that it writes itself, in lower case.
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

    /// What its server can be asked, later, about a file that it took.
    public enum LaterQuestion: Equatable, Sendable {
        /// For the file.
        case file
        /// For the file, with a signature.
        case signedFile
        /// For the original of a photo of Immich, whose number is the last part of the receipt's address, or else for Immich's record of
        /// its SHA-1.
        case immichAsset
        /// For the number of bytes that it has, as tus does.
        case offset
        /// For nothing, and why.
        case nothing(String)
    }

    /// - Parameters:
    ///   - asked: the address that was uploaded to.
    ///   - stored: where the server said that the file is.
    public func laterQuestion(asked: String, stored: String) -> LaterQuestion {
        switch self {
        case .plain: .nothing("a plain request says nothing of its place")
        case .webdav, .nextcloud: .file
        case .put: asked.contains("?") ? .nothing("a presigned address lets nobody look") : .file
        case .multipart: stored == asked ? .nothing("the server did not say where it put it") : .file
        case .tus: .offset
        case .resumable: .nothing("the protocol has no question for what is whole")
        case .s3: .signedFile
        case .immich: .immichAsset
        }
    }
}

/// A way of uploading, with what it wants to know besides the address.
public struct UploadWay: Equatable, Sendable {
    public var kind: UploadKind
    /// Name of the form's field (multipart).
    public var field: String?
    /// What opens the bucket (s3).
    public var s3: S3Access?
    /// The configured destination: its name in messages, and its certificate authorities. `nil` if the app has no configured destinations.
    public var server: UploadServer?

    public init(_ kind: UploadKind, field: String? = nil, s3: S3Access? = nil, server: UploadServer? = nil) {
        (self.kind, self.field, self.s3, self.server) = (kind, field, s3, server)
    }
}
