import Foundation
import Synchronization

/// A server that takes `multipart/form-data`, with faults on demand. Mounted by `FaultyServer.mount(_:)`; what arrives whole is
/// kept in memory.
public final class FormStore: MountedStore {
    /// One that was sent: the form's field, the name that the client gave it, its bytes.
    public struct File: Sendable, Equatable {
        /// Of the form.
        public let field: String
        /// As the client called it.
        public let name: String
        /// All of it.
        public let contents: Data
    }

    /// Its paths begin so.
    public let prefix: String
    /// What goes wrong with uploads to it.
    public let faults = UploadFaults()
    private let kept = Mutex<[File]>([])

    /// A store under a prefix (no slash at its end).
    public init(prefix: String = "/form") { self.prefix = prefix }

    package func exchange(for request: RecordedRequest) -> any Exchange { CollectedExchange(faults, request, act: take) }

    /// What arrived, in order.
    public var files: [File] { kept.withLock { $0 } }

    private func keep(_ file: File) -> Int {
        kept.withLock { kept in
            kept.append(file)
            return kept.count
        }
    }
}

extension FormStore {
    private func take(_ request: RecordedRequest, _ body: Data) -> ResponseScript {
        guard request.method == "POST", let form = FormParts(body, type: request.headers["Content-Type"] ?? ""),
            let file = form.file, let name = file.fileName
        else { return .status(400) }
        let number = keep(File(field: file.name, name: name, contents: file.contents))
        return .status(201, headers: ["Location": "\(prefix)/\(number)"])
    }
}
