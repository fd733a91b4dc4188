import BackgroundLedger
import BackgroundRuntime
import Foundation
import FoundationNetworking
import Synchronization
import TransferMachines

/// A transfer of a session. Created suspended: `resume()` makes it durable and starts it.
open class URLSessionTask: @unchecked Sendable {  // because the mutex guards what changes
    struct Known: Sendable {
        var row: Int64?
        var identifier = 0
        var description: String?
        var error: URLError?
    }

    let session: URLSession
    public let originalRequest: URLRequest?
    let known = Mutex(Known())

    init(session: URLSession, request: URLRequest?) {
        self.session = session
        originalRequest = request
    }

    /// Unique in the session. 0 until `resume()`.
    public var taskIdentifier: Int { known.withLock { $0.identifier } }

    /// The app's own label; survives relaunch.
    public var taskDescription: String? {
        get { known.withLock { $0.description } }
        set {
            let row = known.withLock { known -> Int64? in
                known.description = newValue
                return known.row
            }
            guard let row else { return }
            _ = try? AppRuntime.shared.ledger().write { transaction in
                guard var transfer = try transaction.transfer(row) else { return }
                transfer.taskDescription = newValue
                try transaction.update(transfer)
            }
        }
    }

    /// Why it could not be started, or how it ended.
    public var error: (any Error)? { known.withLock { $0.error } }

    /// The answer of an ended transfer.
    public var response: URLResponse? { current?.response }
    public var countOfBytesReceived: Int64 { current?.bytesDone ?? 0 }
    public var countOfBytesExpectedToReceive: Int64 { current?.bytesTotal ?? -1 }

    var current: TransferRecord? {
        guard let row = known.withLock({ $0.row }) else { return nil }
        return try? AppRuntime.shared.ledger().read { try $0.transfer(row) }
    }

    /// Durable when it returns. A failure to start is in ``error``.
    open func resume() {
        let (row, description) = known.withLock { ($0.row, $0.description) }
        // It runs already; suspended tasks come with a later version.
        guard row == nil else { return }
        do {
            let record = try start(description: description)
            CrashPoint.reach("app.taskResumed")
            known.withLock {
                $0.row = record.id
                $0.identifier = record.taskIdentifier
            }
        } catch {
            let failure = error as? URLError ?? URLError(.cannotCreateFile, userInfo: [NSLocalizedDescriptionKey: "\(error)"])
            known.withLock { $0.error = failure }
        }
    }

    /// Ends the transfer for good; its delegate hears `.cancelled`.
    open func cancel() {
        guard let row = known.withLock({ $0.row }) else { return }
        _ = try? AppRuntime.shared.commit { transaction in
            guard var transfer = try transaction.transfer(row), !transfer.state.isTerminal else { return }
            transfer.state = .cancelled
            transfer.errorCode = URLError.Code.cancelled.rawValue
            transfer.finishedAt = Date()
            try transaction.update(transfer)
            if transfer.isAdopted { try transaction.addEvent(for: transfer, now: Date()) }
        }
    }

    /// Begins or joins the transfer in one transaction.
    func start(description: String?) throws -> TransferRecord {
        preconditionFailure("URLSessionTask is abstract")
    }

    func sessionIdentifier() throws -> String {
        guard let identifier = session.configuration.identifier else {
            throw URLError(
                .unsupportedURL,
                userInfo: [
                    NSLocalizedDescriptionKey: "tasks exist for background sessions only, so far"
                ])
        }
        return identifier
    }
}

/// A download into a file.
public final class URLSessionDownloadTask: URLSessionTask, @unchecked Sendable {  // because its base is
    /// A task of an ended transfer, for delegates.
    init(session: URLSession, record: TransferRecord) {
        super.init(session: session, request: URL(string: record.url).map { URLRequest(url: $0) })
        known.withLock {
            $0.row = record.id
            $0.identifier = record.taskIdentifier
            $0.description = record.taskDescription
        }
    }

    override init(session: URLSession, request: URLRequest?) { super.init(session: session, request: request) }

    override func start(description: String?) throws -> TransferRecord {
        guard let originalRequest else { throw URLError(.badURL) }
        let identifier = try sessionIdentifier()
        let order = try session.order(for: originalRequest)
        let now = Date()
        return try AppRuntime.shared.commit { transaction in
            var transfer = try self.session.joinOrInsert(order, session: identifier, transaction, now: now)
            transfer.isAdopted = true
            transfer.adoptableUntil = nil
            transfer.taskDescription = description ?? transfer.taskDescription
            // A promoted transfer has its session's patience from here on.
            transfer.resourceTimeout = max(transfer.resourceTimeout, self.session.configuration.timeoutIntervalForResource)
            try transaction.update(transfer)
            // It ended between the cancellation and now: the answer that is there is the one delivered.
            if transfer.state.isTerminal { try transaction.addEvent(for: transfer, now: now) }
            return transfer
        }
    }
}

/// An upload from a file.
public final class URLSessionUploadTask: URLSessionTask, @unchecked Sendable {  // because its base is
    /// How the file is put on the server. Beyond Apple.
    public enum Delivery: Sendable, Equatable {
        /// One request with the file as its body.
        case plain
        /// WebDAV: PUT to a temporary name in the collection at the request's URL, checked, then MOVE to this name
        /// (or the next free one): no half file ever stands under a final name.
        case webdav(fileName: String)
        /// One PUT to this name (or the next free one) in the collection at the request's URL.
        case put(fileName: String)
    }

    private let file: URL?
    private let chosenDelivery = Mutex(Delivery.plain)
    private let chosenKey = Mutex<String?>(nil)
    private let snapshot = Mutex<Snapshot?>(nil)

    /// Set before `resume()`.
    public var delivery: Delivery {
        get { chosenDelivery.withLock { $0 } }
        set { chosenDelivery.withLock { $0 = newValue } }
    }

    /// A name for this upload within its session, so that a process that died after `resume()` can do the same again:
    /// a task resumed under the key of an upload that runs or succeeded joins that one. Set before `resume()`.
    /// Beyond Apple; `nil`: every task is an upload of its own.
    public var submissionKey: String? {
        get { chosenKey.withLock { $0 } }
        set { chosenKey.withLock { $0 = newValue } }
    }

    init(session: URLSession, request: URLRequest, file: URL) {
        self.file = file
        super.init(session: session, request: request)
    }

    init(session: URLSession, record: TransferRecord) {
        file = nil
        super.init(session: session, request: URL(string: record.url).map { URLRequest(url: $0) })
        known.withLock {
            $0.row = record.id
            $0.identifier = record.taskIdentifier
            $0.description = record.taskDescription
        }
    }

    /// Number of the transfer in the ledger, once resumed: what `transfers` lists. Beyond Apple.
    public var transferNumber: Int64? { known.withLock { $0.row } }

    /// Makes the snapshot now instead of in `resume()`, to learn early whether the file can be read. Beyond Apple.
    ///
    /// - Returns: the copy, and digest and size of what will be sent.
    /// - Throws: a description of why the file cannot be queued: missing, unreadable, not a file, empty, changing.
    @discardableResult
    public func takeSnapshot() throws -> (file: URL, sha256: String, byteCount: Int64) {
        guard let file else { throw URLError(.fileDoesNotExist) }
        let directories = AppRuntime.shared.directories
        let taken: Snapshot
        if let earlier = snapshot.withLock({ $0 }) {
            taken = earlier
        } else {
            _ = try AppRuntime.shared.ledger()
            taken = try Snapshot.take(of: file, in: directories)
            snapshot.withLock { $0 = taken }
        }
        return (directories.spool.appendingPathComponent(taken.name), taken.sha256, taken.byteCount)
    }

    /// Removes a snapshot that will not be sent after all. Beyond Apple.
    public func discardSnapshot() {
        let taken = snapshot.withLock { snapshot in
            defer { snapshot = nil }
            return snapshot
        }
        guard let taken else { return }
        try? FileManager.default.removeItem(at: AppRuntime.shared.directories.spool.appendingPathComponent(taken.name))
    }

    override func start(description: String?) throws -> TransferRecord {
        guard let originalRequest, let file else { throw URLError(.badURL) }
        let identifier = try sessionIdentifier()
        var request = originalRequest
        if request.httpMethod == nil || request.httpMethod == "GET" { request.httpMethod = "PUT" }
        let order = try session.order(for: request)
        try takeSnapshot()
        guard let taken = snapshot.withLock({ $0 }) else { throw URLError(.fileDoesNotExist) }
        let key = submissionKey.map { "key:" + $0 }
        var record = session.newRecord(order, session: identifier, key: key ?? taken.name, kind: .upload, now: Date())
        record.isAdopted = true
        record.taskDescription = description
        record.bodyFile = taken.name
        record.bytesTotal = taken.byteCount
        record.sourceSHA256 = taken.sha256
        record.sourceName = file.path
        let (method, name): (UploadOrder.Method, String) =
            switch delivery {
            case .plain: (.plain, file.lastPathComponent)
            case .webdav(let name): (.webdav, name)
            case .put(let name): (.put, name)
            }
        record.upload = UploadOrder(method: method, fileName: name, byteCount: taken.byteCount, token: taken.name)
        let new = record
        let known = try AppRuntime.shared.commit { transaction in
            if let key, var earlier = try transaction.repeatableUpload(session: identifier, key: key) {
                if earlier.state == .paused {
                    earlier.requeue(now: new.lastProgressAt)
                    try transaction.update(earlier)
                }
                return earlier
            }
            return try transaction.insert(new)
        }
        if known.bodyFile != taken.name { discardSnapshot() }
        return known
    }
}
