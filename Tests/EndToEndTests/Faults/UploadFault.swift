import FaultyServer
import Foundation

/// A way of uploading, as the configuration names it, with a store that speaks it.
enum UploadWay: String, CaseIterable {
    case put, webdav, multipart, tus

    /// The request that carries the bytes.
    var method: String {
        switch self {
        case .put, .webdav: "PUT"
        case .multipart: "POST"
        case .tus: "PATCH"
        }
    }

    /// The request after which the photo is there for good.
    var lastMethod: String { self == .webdav ? "MOVE" : method }

    func makeStore(prefix: String, in folder: URL) throws -> any UploadStore {
        switch self {
        case .put, .webdav: try DavStore(prefix: prefix, directory: folder.appendingPathComponent(prefix))
        case .multipart: FormStore(prefix: prefix)
        case .tus: TusStore(prefix: prefix)
        }
    }

    /// The photos that are there, whole.
    static func photos(in store: any UploadStore) -> [Data] {
        switch store {
        // What waits under a hidden name is not there yet.
        case let store as DavStore: store.files.filter { !$0.contains("/.") }.compactMap { store.contents(of: $0) }
        case let store as FormStore: store.files.map(\.contents)
        case let store as TusStore: store.files
        default: []
        }
    }
}

/// What goes wrong on a server, and what is promised then.
struct UploadFault: Sendable {
    enum Promise: Equatable, Sendable {
        /// There, once and whole.
        case there
        /// There at least once: the protocol has no way to ask.
        case thereMaybeTwice
        /// Final, in words; nothing is there.
        case failed(Int)
        /// Visibly waiting for another try; nothing is there.
        case waiting(Int)
    }

    let name: String
    var ways = UploadWay.allCases
    let promise: @Sendable (UploadWay) -> Promise
    let apply: @Sendable (any UploadStore, UploadWay) -> Void

    init(
        _ name: String, of ways: [UploadWay] = UploadWay.allCases, _ promise: @escaping @Sendable (UploadWay) -> Promise,
        _ apply: @escaping @Sendable (any UploadStore, UploadWay) -> Void
    ) {
        (self.name, self.ways, self.promise, self.apply) = (name, ways, promise, apply)
    }

    init(
        _ name: String, of ways: [UploadWay] = UploadWay.allCases, _ promise: Promise,
        _ apply: @escaping @Sendable (any UploadStore, UploadWay) -> Void
    ) {
        self.init(name, of: ways, { _ in promise }, apply)
    }

    static let size = 400_000

    /// The next request with bytes is answered like that, after it was read.
    private static func refused(_ status: Int, _ promise: Promise, _ text: String, _ headers: HeaderList = [:]) -> UploadFault {
        UploadFault("\(status) \(text)", promise) { store, way in
            store.refuse(status: status, method: way.method, headers: headers)
        }
    }

    static let all: [UploadFault] = [
        UploadFault("nothing goes wrong", .there) { _, _ in },
        refused(401, .failed(-1013), "wants other credentials"),
        UploadFault(
            "403 refuses", { $0 == .tus ? .there : .failed(-1102) }
        ) { store, way in store.refuse(status: 403, method: way.method) },
        UploadFault(
            "404 no such folder",
            { way in
                switch way {
                case .put: .failed(-1100)
                case .webdav, .tus: .there
                case .multipart: .failed(-1011)
                }
            }
        ) { store, way in store.refuse(status: 404, method: way.method) },
        refused(423, .there, "locked, once"),
        refused(429, .there, "too many requests, once", ["Retry-After": "0"]),
        refused(500, .there, "once"),
        refused(502, .there, "of a gateway, once"),
        refused(503, .there, "once", ["Retry-After": "0"]),
        refused(507, .waiting(-1011), "the server is full"),
        UploadFault("413 too large for the server", of: [.put, .webdav, .multipart], .failed(-1103)) { store, way in
            store.refuse(status: 413, method: way.method)
        },
        UploadFault("413 of a proxy that takes 256 KiB at most", of: [.tus], .there) { store, _ in
            (store as? TusStore)?.limit(to: 256 << 10)
        },
        UploadFault("302 to a page that asks for a login", .failed(-1010)) { store, way in
            store.refuse(status: 302, method: way.method, headers: ["Location": "/login"])
        },
        UploadFault("cut after half of the bytes", .there) { store, way in
            store.cutUploads(afterBytes: size / 2, method: way.method)
        },
        UploadFault("cut four times, each after a tenth more", .there) { store, way in
            for _ in 0..<4 { store.cutUploads(afterBytes: size / 10, method: way.method) }
        },
        UploadFault(
            "the answer to the bytes is lost", { $0 == .multipart ? .thereMaybeTwice : .there }
        ) { store, way in store.loseAnswers(to: way.method) },
        UploadFault("the answer to the MOVE is lost", of: [.webdav], .there) { store, way in store.loseAnswers(to: way.lastMethod)
        },
        UploadFault("the answer to the creation is lost", of: [.tus], .there) { store, _ in store.loseAnswers(to: "POST") },
        UploadFault("says yes and keeps nothing, once", of: [.put, .webdav], .there) { store, way in
            store.refuse(status: 201, method: way.method)
        },
        UploadFault("says yes to a creation without saying where", of: [.tus], .failed(-1011)) { store, _ in
            store.refuse(status: 201, method: "POST")
        },
        UploadFault("409 another offset, once", of: [.tus], .there) { store, way in store.refuse(status: 409, method: way.method)
        },
        UploadFault("460 damaged on the way, once", of: [.tus], .there) { store, way in
            store.refuse(status: 460, method: way.method)
        },
        UploadFault("410 the place is over", of: [.tus], .there) { store, way in store.refuse(status: 410, method: way.method) },
        UploadFault("another version of the protocol", of: [.tus], .failed(-1011)) { store, _ in
            store.refuse(status: 412, method: "POST", headers: ["Tus-Version": "0.2.2"])
        },
        UploadFault("OPTIONS does not get through", of: [.tus], .there) { store, _ in store.refuse(status: 405, method: "OPTIONS")
        },
        UploadFault("a server without MOVE", of: [.webdav], .failed(-1011)) { store, way in
            store.refuse(status: 405, method: way.lastMethod)
        },
        UploadFault("412 the name is taken, once", of: [.put], .there) { store, way in
            store.refuse(status: 412, method: way.method)
        },
    ]
}
