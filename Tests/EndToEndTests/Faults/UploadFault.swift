import FaultyServer
import Foundation

/// A kind of destination, and a test server for it.
enum UploadWay: String, CaseIterable {
    case put, webdav, multipart, tus, resumable, s3
    /// Amazon S3, with a file that is sent in parts.
    case s3Parts = "s3, in parts"
    case nextcloud
    case nextcloudChunks = "nextcloud, in chunks"
    case immich

    /// The `kind` in the configuration.
    var kind: String { String(rawValue.prefix { $0 != "," }) }

    /// The kinds whose file is sent as one body or as a stream.
    static let small = allCases.filter { $0 != .s3Parts && $0 != .nextcloudChunks }

    /// The size of the photo in bytes.
    var size: Int { Self.small.contains(self) ? 400_000 : 11 << 20 }

    /// The method of the request that contains the bytes, as the test store names the method.
    var method: String {
        switch self {
        case .put, .webdav, .s3, .s3Parts, .nextcloud, .nextcloudChunks: "PUT"
        case .multipart, .immich: "POST"
        case .tus, .resumable: "PATCH"
        }
    }

    func carries(_ request: RecordedRequest) -> Bool {
        // Two requests contain no photo: Immich's check for duplicates, and the request that checks whether an S3 server supports
        // conditions.
        request.method == method && !request.path.hasSuffix("-check") && !(kind == "s3" && request.path.hasSuffix(".part"))
    }

    /// The method of the request that stores the photo permanently, as the test store names the method.
    var lastMethod: String {
        switch self {
        case .webdav, .nextcloud, .nextcloudChunks: "MOVE"
        case .s3Parts: "COMPLETE"
        case .put, .multipart, .tus, .resumable, .s3, .immich: method
        }
    }

    func makeStore(prefix: String, in folder: URL) throws -> any UploadStore {
        switch self {
        case .put, .webdav: try DavStore(prefix: prefix, directory: folder.appendingPathComponent(prefix))
        case .multipart: FormStore(prefix: prefix)
        case .tus: TusStore(prefix: prefix)
        case .resumable: ResumableStore(prefix: prefix)
        case .s3, .s3Parts: S3Store(prefix: prefix)
        case .nextcloud, .nextcloudChunks: NextcloudStore(prefix: prefix)
        case .immich: ImmichStore(prefix: prefix)
        }
    }

    /// The lines after `kind` in the configuration.
    func lines(_ address: String, secrets: URL) -> String {
        switch self {
        case .put, .webdav, .tus, .resumable: "url = \"\(address)/\""
        case .multipart: "url = \"\(address)\""
        case .s3, .s3Parts: "url = \"\(address)/\"\naccess_key = \"me\"\nsecret_key_file = \"\(secrets.path)\""
        case .nextcloud, .nextcloudChunks: "url = \"\(address)/remote.php/dav/files/me/storms/\""
        case .immich: "url = \"\(address)\"\ntoken_file = \"\(secrets.path)\""
        }
    }

    /// The complete photos in the store.
    static func photos(in store: any UploadStore) -> [Data] {
        switch store {
        // A hidden file is an incomplete upload.
        case let store as DavStore: store.files.filter { !$0.contains("/.") }.compactMap { store.contents(of: $0) }
        case let store as FormStore: store.files.map(\.contents)
        case let store as TusStore: store.files
        case let store as ResumableStore: store.files
        case let store as S3Store: store.files
        case let store as NextcloudStore: store.files
        case let store as ImmichStore: store.files
        default: []
        }
    }

    /// The number of bytes that the store has received. `nil` if the kind of store does not keep the parts of an upload.
    static func bytesTaken(by store: any UploadStore) -> Int? {
        switch store {
        case let store as TusStore: store.bytesTaken
        case let store as ResumableStore: store.bytesTaken
        case let store as S3Store: store.bytesTaken
        case let store as NextcloudStore: store.bytesTaken
        default: nil
        }
    }
}

/// A fault of a server during an upload, and the promised result.
struct UploadFault: Sendable {
    enum Promise: Equatable, Sendable {
        /// The photo is stored once and completely.
        case there
        /// The photo is stored at least once. The client of this protocol cannot query whether the server has the photo.
        case thereMaybeTwice
        /// The upload fails with this code, and no photo is stored.
        case failed(Int)
        /// The upload waits for another attempt. The last error of the upload has this code, and no photo is stored.
        case waiting(Int)
    }

    let name: String
    var ways = UploadWay.small
    let promise: @Sendable (UploadWay) -> Promise
    let apply: @Sendable (any UploadStore, UploadWay) -> Void

    init(
        _ name: String, of ways: [UploadWay] = UploadWay.small, _ promise: @escaping @Sendable (UploadWay) -> Promise,
        _ apply: @escaping @Sendable (any UploadStore, UploadWay) -> Void
    ) {
        (self.name, self.ways, self.promise, self.apply) = (name, ways, promise, apply)
    }

    init(
        _ name: String, of ways: [UploadWay] = UploadWay.small, _ promise: Promise,
        _ apply: @escaping @Sendable (any UploadStore, UploadWay) -> Void
    ) {
        self.init(name, of: ways, { _ in promise }, apply)
    }

    /// Makes the store read the next request that contains bytes, and respond to this request with a status.
    private static func refused(_ status: Int, _ promise: Promise, _ text: String, _ headers: HeaderList = [:]) -> UploadFault {
        UploadFault("\(status) \(text)", promise) { store, way in
            store.refuse(status: status, method: way.method, headers: headers)
        }
    }

    /// The body of an error response of Nextcloud.
    private static func sabre(_ exception: String, _ message: String, _ more: String = "") -> String {
        "<error><exception>Sabre\\DAV\\Exception\\\(exception)</exception><message>\(message)</message>\(more)</error>"
    }

    private static let everyWay = UploadWay.allCases
    private static let pieces: [UploadWay] = [.s3Parts, .nextcloudChunks]

    static let all: [UploadFault] = [
        UploadFault("no fault", of: everyWay, .there) { _, _ in },
        refused(401, .failed(-1013), "(the server requires other credentials)"),
        UploadFault(
            "403 (the server refuses the upload)", { $0 == .tus ? .there : .failed(-1102) }
        ) { store, way in store.refuse(status: 403, method: way.method) },
        UploadFault("404 from a proxy, once", .there) { store, way in store.refuse(status: 404, method: way.method) },
        UploadFault(
            "404 to every request (the folder does not exist)", of: [.put, .multipart, .s3, .immich],
            { way in
                switch way {
                case .put, .immich: .failed(-1100)
                default: .failed(-1011)
                }
            }
        ) { store, way in store.refuse(status: 404, method: way.method, next: 1000) },
        refused(423, .there, "(the file is locked), once"),
        refused(429, .there, "(too many requests), once", ["Retry-After": "0"]),
        refused(500, .there, "(an error of the server), once"),
        refused(502, .there, "(a gateway does not reach the server), once"),
        refused(503, .there, "(the server is not available), once", ["Retry-After": "0"]),
        refused(507, .waiting(-1011), "(the server is full)"),
        UploadFault(
            "413 (the file is too large for the server)", of: [.put, .webdav, .multipart, .s3, .nextcloud, .immich],
            .failed(-1103)
        ) { store, way in store.refuse(status: 413, method: way.method) },
        UploadFault("413 from a proxy that accepts at most 256 KiB", of: [.tus, .resumable], .there) { store, _ in
            (store as? TusStore)?.limit(to: 256 << 10)
            (store as? ResumableStore)?.limit(to: 256 << 10)
        },
        // A redirect to another path over http counts as a temporary captive portal. If the upload is a form, the photo may
        // already be stored.
        UploadFault(
            "302 (a redirect to a login page), once", of: [.put, .webdav, .tus, .resumable, .s3, .nextcloud, .immich], .there
        ) { store, way in
            store.refuse(status: 302, method: way.method, headers: ["Location": "/login"])
        },
        UploadFault("302 (a redirect to a login page), once", of: [.multipart], .failed(-1010)) { store, way in
            store.refuse(status: 302, method: way.method, headers: ["Location": "/login"])
        },
        UploadFault("the connection is cut after half of the bytes", .there) { store, way in
            store.cutUploads(afterBytes: way.size / 2, method: way.method)
        },
        UploadFault("the connection is cut four times, each time after another tenth of the bytes", .there) { store, way in
            for _ in 0..<4 { store.cutUploads(afterBytes: way.size / 10, method: way.method) }
        },
        UploadFault("the connection is cut in the middle of a part", of: pieces, .there) { store, way in
            store.cutUploads(afterBytes: 2 << 20, method: way.method)
        },
        UploadFault(
            "the response to the request with the bytes is lost", of: everyWay, { $0 == .multipart ? .thereMaybeTwice : .there }
        ) { store, way in store.loseAnswers(to: way.method) },
        UploadFault(
            "the response to the last request is lost", of: [.webdav, .nextcloud, .nextcloudChunks, .s3Parts], .there
        ) { store, way in store.loseAnswers(to: way.lastMethod) },
        UploadFault("the response to the creation of the upload is lost", of: [.tus, .resumable], .there) { store, _ in
            store.loseAnswers(to: "POST")
        },
        UploadFault("the response to the creation of the upload is lost", of: [.s3Parts], .there) { store, _ in
            store.loseAnswers(to: "CREATE")
        },
        UploadFault("the response to the creation of the upload is lost", of: [.nextcloud], .there) { store, _ in
            store.loseAnswers(to: "MKCOL")
        },
        UploadFault(
            "the server responds with success but does not store the file, once",
            of: [.put, .webdav, .resumable, .s3, .nextcloud, .immich], .there
        ) { store, way in store.refuse(status: 201, method: way.method) },
        UploadFault("the server responds with success but does not store the file, once", of: [.tus], .there) { store, way in
            store.refuse(status: 204, method: way.method, headers: ["Upload-Offset": "\(way.size)"])
        },
        UploadFault(
            "the server responds to the last request with success, but does not move the file, once", of: [.webdav, .nextcloud],
            .there
        ) {
            store, way in
            store.refuse(status: 201, method: way.lastMethod)
        },
        UploadFault(
            "the server responds to the creation of the upload without an address", of: [.tus, .resumable], .failed(-1011)
        ) {
            store, _ in
            store.refuse(status: 201, method: "POST")
        },
        UploadFault("the server responds to the creation of the upload without an address", of: [.s3Parts], .failed(-1011)) {
            store, _ in
            store.refuse(status: 200, method: "CREATE")
        },
        UploadFault("409 (the server has another offset), once", of: [.tus, .resumable], .there) { store, way in
            store.refuse(status: 409, method: way.method)
        },
        UploadFault("460 (the bytes arrived damaged), once", of: [.tus], .there) { store, way in
            store.refuse(status: 460, method: way.method)
        },
        UploadFault("410 (the upload does not exist on the server any more)", of: [.tus, .resumable], .there) { store, way in
            store.refuse(status: 410, method: way.method)
        },
        UploadFault("404 (the parts do not exist on the server any more)", of: pieces, .there) { store, way in
            store.refuse(status: 404, method: way.method)
        },
        UploadFault("the server supports another version of the protocol", of: [.tus], .failed(-1011)) { store, _ in
            store.refuse(status: 412, method: "POST", headers: ["Tus-Version": "0.2.2"])
        },
        UploadFault("the server supports only an unknown version of the protocol", of: [.resumable], .failed(-1011)) { store, _ in
            store.refuse(status: 400, method: "POST", next: 9)
        },
        UploadFault("405 (the server does not permit OPTIONS)", of: [.tus], .there) { store, _ in
            store.refuse(status: 405, method: "OPTIONS")
        },
        UploadFault("the server does not support MOVE", of: [.webdav], .failed(-1011)) { store, way in
            store.refuse(status: 405, method: way.lastMethod)
        },
        UploadFault(
            "400 (the storage of the server failed), once", of: [.put, .webdav, .tus, .resumable, .nextcloud, .nextcloudChunks],
            .there
        ) { store, way in
            store.refuse(
                status: 400, method: way.method,
                body: UploadFault.sabre("BadRequest", "Expected filesize of 9 bytes but read 4 bytes."))
        },
        UploadFault("403 (the server permits another try), once", of: [.put, .webdav, .nextcloud], .there) { store, way in
            store.refuse(
                status: 403, method: way.method,
                body: UploadFault.sabre("Forbidden", "The storage is checked.", "<retry>true</retry>"))
        },
        UploadFault("400 (the server reports RequestTimeout), once", of: [.s3, .s3Parts], .there) { store, way in
            store.refuse(
                status: 400, method: way.method,
                body: "<Error><Code>RequestTimeout</Code><Message>The socket was not read from.</Message></Error>")
        },
        UploadFault("400 (the quota of the user is used up)", of: [.immich], .waiting(-1011)) { store, way in
            store.refuse(status: 400, method: way.method, body: #"{"message":"Quota has been exceeded!"}"#)
        },
        UploadFault("412 (the server reports that a file with this name exists), once", of: [.put, .s3, .nextcloud], .there) {
            store, way in
            store.refuse(status: 412, method: way == .nextcloud ? way.lastMethod : way.method)
        },
        UploadFault("501 (the server does not support If-None-Match)", of: [.s3, .s3Parts], .there) { store, _ in
            (store as? S3Store)?.forgetConditions()
        },
        UploadFault("the server responds to the last request with 200 and an error in the body, once", of: [.s3Parts], .there) {
            store, _ in
            (store as? S3Store)?.failNextCompletion()
        },
        UploadFault("409 to the last request (the folder is missing), once", of: [.nextcloud], .there) { store, way in
            store.refuse(status: 409, method: way.lastMethod)
        },
        UploadFault("the server does not support the query for duplicates", of: [.immich], .there) { store, _ in
            store.refuse(status: 404, method: "CHECK", next: 2)
        },
    ]
}
