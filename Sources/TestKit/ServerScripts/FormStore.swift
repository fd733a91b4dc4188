import Foundation
import Synchronization

/// A server that accepts `multipart/form-data`, with faults on demand. `FaultyServer.mount(_:)` mounts it. Complete files are kept in
/// memory.
public final class FormStore: MountedStore {
    /// A file that was sent: the form's field, the name from the client, and the bytes.
    public struct File: Sendable, Equatable {
        /// The name of the form's field.
        public let field: String
        /// The name of the file, as the client sent it.
        public let name: String
        /// The complete bytes.
        public let contents: Data
    }

    /// The path prefix of the store.
    public let prefix: String
    /// The faults of uploads to this store.
    public let faults = UploadFaults()
    private let kept = Mutex<[File]>([])

    /// Creates a store. The paths of its URLs begin with `prefix`, which does not end with a slash.
    public init(prefix: String = "/form") { self.prefix = prefix }

    package func exchange(for request: RecordedRequest) -> any Exchange { CollectedExchange(faults, request, act: store) }

    /// The files that arrived, in order.
    public var files: [File] { kept.withLock { $0 } }

    private func keep(_ file: File) -> Int {
        kept.withLock { kept in
            kept.append(file)
            return kept.count
        }
    }
}

extension FormStore {
    private func store(_ request: RecordedRequest, _ body: Data) -> ResponseScript {
        guard request.method == "POST", let form = FormParts(body, type: request.headers["Content-Type"] ?? ""),
            let file = form.file, let name = file.fileName
        else { return .status(400) }
        let number = keep(File(field: file.name, name: name, contents: file.contents))
        return .status(201, headers: ["Location": "\(prefix)/\(number)"])
    }
}
