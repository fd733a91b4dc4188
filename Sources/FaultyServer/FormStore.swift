import Foundation
import NIOCore
import Synchronization

/// A server that takes `multipart/form-data`, with faults on demand. Mounted by `FaultyServer.mount(_:)`; what arrives whole is
/// kept in memory.
public final class FormStore: MountedStore {
    public struct File: Sendable, Equatable {
        public let field: String
        public let name: String
        public let contents: Data
    }

    public let prefix: String
    public let faults = UploadFaults()
    private let kept = Mutex<[File]>([])

    /// A store under a prefix (no slash at its end).
    public init(prefix: String = "/form") { self.prefix = prefix }

    func exchange(for request: RecordedRequest) -> any Exchange { FormExchange(self, request) }

    /// What arrived, in order.
    public var files: [File] { kept.withLock { $0 } }

    func keep(_ file: File) -> Int {
        kept.withLock { kept in
            kept.append(file)
            return kept.count
        }
    }
}

/// One request to a form's server.
private final class FormExchange: Exchange {
    let opening: ResponseScript?
    private let store: FormStore
    private let request: RecordedRequest
    private let losesAnswer: Bool
    private var body = Data()

    init(_ store: FormStore, _ request: RecordedRequest) {
        self.store = store
        self.request = request
        let fault = store.faults.take(for: request.method)
        opening = fault?.opening()
        losesAnswer = fault?.losesAnswer == true
    }

    func receive(_ bytes: ByteBuffer) { body += Data(bytes.readableBytesView) }

    func finish() -> ResponseScript {
        if let opening, opening.beginning == .afterBody { return opening }
        guard request.method == "POST", let file = Self.file(in: body, type: request.headers["Content-Type"] ?? "") else {
            return .status(400)
        }
        let number = store.keep(file)
        return losesAnswer ? .hangUp : .status(201, headers: ["Location": "\(store.prefix)/\(number)"])
    }

    func abandon() {}

    /// The first part, and nothing behind it (RFC 2046 §5.1).
    private static func file(in body: Data, type: String) -> FormStore.File? {
        guard let start = type.range(of: "boundary=") else { return nil }
        let boundary = Data("--\(type[start.upperBound...])".utf8)
        let end = Data("\r\n".utf8) + boundary + Data("--\r\n".utf8)
        guard body.starts(with: boundary + Data("\r\n".utf8)), body.suffix(end.count) == end,
            let head = body.range(of: Data("\r\n\r\n".utf8))
        else { return nil }
        let lines = String(decoding: body[..<head.lowerBound], as: UTF8.self)
        func value(_ name: String) -> String? {
            guard let start = lines.range(of: " \(name)=\"") else { return nil }
            return String(lines[start.upperBound...].prefix { $0 != "\"" })
        }
        guard let field = value("name"), let name = value("filename") else { return nil }
        return FormStore.File(field: field, name: name, contents: Data(body[head.upperBound..<(body.count - end.count)]))
    }
}
