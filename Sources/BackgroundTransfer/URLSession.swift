import BackgroundLedger
import BackgroundRuntime
import Foundation
import FoundationNetworking
import Synchronization
import TransferMachines

/// Transfers over HTTP, in this process or, for a background configuration, in the app's agent.
///
/// **Differs from Apple.** `data(for:)` works on a background session: it submits the transfer and awaits it.
/// Cancelling the await takes away the waiter, not the connection: for the grace time the transfer can be adopted
/// by ``downloadTask(with:)`` with an equal request, which then delivers it through `.backgroundTask(.urlSession(…))`.
/// Two equal requests on one background session share one transfer.
/// Ordinary sessions have `data(for:)` and `data(from:)` only, so far.
public final class URLSession: Sendable {
    public static let shared = URLSession(configuration: .default)

    public let configuration: URLSessionConfiguration
    private let replay: EventReplay?

    /// For a background session `delegate` hears of every ended transfer that the app was not told of yet, those of
    /// earlier processes first. The session holds its delegate until ``finishTasksAndInvalidate()``.
    public init(
        configuration: URLSessionConfiguration, delegate: (any URLSessionDelegate)? = nil, delegateQueue: OperationQueue? = nil
    ) {
        self.configuration = configuration.copied()
        if let identifier = configuration.identifier, let delegate {
            replay = EventReplay(session: identifier, delegate: delegate, queue: delegateQueue)
            replay?.start(for: self)
        } else {
            replay = nil
        }
    }

    /// Lets go of the delegate; transfers of a background session go on.
    public func finishTasksAndInvalidate() { replay?.stop() }

    public func invalidateAndCancel() {
        replay?.stop()
        guard let identifier = configuration.identifier else { return }
        _ = try? AppRuntime.shared.commit { transaction in
            for var transfer in try transaction.unfinishedTransfers(session: identifier) {
                transfer.state = .cancelled
                transfer.finishedAt = Date()
                try transaction.update(transfer)
            }
        }
    }

    // MARK: Data

    public func data(from url: URL) async throws -> (Data, URLResponse) { try await data(for: URLRequest(url: url)) }

    /// The whole answer, whatever its status.
    ///
    /// - Throws: `URLError`; `.cancelled` when the awaiting task is cancelled.
    public func data(for request: URLRequest) async throws -> (Data, URLResponse) {
        let order = try order(for: request)
        guard let identifier = configuration.identifier else {
            return try await InProcessTransfers.shared.data(for: order, configuration: configuration)
        }
        // Cancelled before it began: nothing is submitted, and a promoted download starts on its own.
        guard !Task.isCancelled else { throw URLError(.cancelled) }
        let grace = try AppRuntime.shared.ledger().read { try $0.fact(.settings) }?.grace ?? AgentSettings().grace
        let now = Date()
        let waiting = try AppRuntime.shared.commit { transaction -> WaitingTransfer in
            var transfer = try self.joinOrInsert(order, session: identifier, transaction, now: now)
            transfer.adoptableUntil = nil
            // Paused when all work was ended, say; whoever awaits it now wants it again. (A task's `resume()` leaves it
            // paused: the handler of a launch that is being ended calls that.)
            if transfer.state == .paused { transfer.requeue(now: now) }
            try transaction.update(transfer)
            let waiter = try transaction.addWaiter(to: transfer.id!, process: .current)
            return WaitingTransfer(transfer: transfer.id!, waiter: waiter, grace: grace)
        }
        CrashPoint.reach("app.transferSubmitted")
        return try await withTaskCancellationHandler {
            try await waiting.result()
        } onCancel: {
            waiting.giveUp()
        }
    }

    // MARK: Tasks

    /// A download that outlives this process; `resume()` starts it, or adopts an equal one that runs.
    public func downloadTask(with request: URLRequest) -> URLSessionDownloadTask {
        URLSessionDownloadTask(session: self, request: request)
    }

    public func downloadTask(with url: URL) -> URLSessionDownloadTask { downloadTask(with: URLRequest(url: url)) }

    /// An upload that outlives this process. `resume()` takes a snapshot of the file: later changes to it, even
    /// its deletion, do not matter.
    public func uploadTask(with request: URLRequest, fromFile file: URL) -> URLSessionUploadTask {
        URLSessionUploadTask(session: self, request: request, file: file)
    }

    // MARK: Orders

    /// A request as it goes to the wire: what the key is made of.
    struct Order: Sendable {
        var method: String
        var url: String
        var headers: [HeaderField]
        var body: Data?
    }

    func order(for request: URLRequest) throws -> Order {
        guard let url = request.url, let scheme = url.scheme?.lowercased(), scheme == "http" || scheme == "https" else {
            throw URLError(.unsupportedURL)
        }
        var fields = request.allHTTPHeaderFields ?? [:]
        for (name, value) in configuration.httpAdditionalHeaders ?? [:] where fields["\(name)"] == nil {
            fields["\(name)"] = "\(value)"
        }
        let headers = fields.map { HeaderField($0.key, $0.value) }.sorted { $0.name < $1.name }
        let method = request.httpMethod ?? "GET"
        if configuration.identifier != nil, request.httpBody != nil || request.httpBodyStream != nil {
            throw URLError(
                .unsupportedURL,
                userInfo: [
                    NSLocalizedDescriptionKey: "a background session sends bodies from files only: use uploadTask(with:fromFile:)"
                ])
        }
        return Order(method: method, url: url.absoluteString, headers: headers, body: request.httpBody)
    }

    /// The transfer of an equal request that can be joined, or a new row.
    func joinOrInsert(
        _ order: Order, session: String, _ transaction: LedgerTransaction, now: Date
    ) throws -> TransferRecord {
        let parts = [session, order.method, order.url] + order.headers.map { "\($0.name.lowercased()):\($0.value)" }
        let key = FileDigest.sha256(of: Data(parts.joined(separator: "\n").utf8))
        if let known = try transaction.adoptableTransfer(session: session, key: key, now: now) { return known }
        return try transaction.insert(newRecord(order, session: session, key: key, kind: .download, now: now))
    }

    func newRecord(_ order: Order, session: String, key: String, kind: TransferRecord.Kind, now: Date) -> TransferRecord {
        var record = TransferRecord(
            session: session, key: key, kind: kind, method: order.method, url: order.url, headers: order.headers, now: now)
        record.idleTimeout = configuration.timeoutIntervalForRequest
        record.resourceTimeout = configuration.timeoutIntervalForResource
        record.maximumBodyBytes = configuration.maximumBodyBytes
        return record
    }
}

/// One await on one transfer of the agent's.
struct WaitingTransfer: Sendable {
    let transfer: Int64
    let waiter: Int64
    let grace: Double

    /// Waits for the end, reads the answer, and lets go of it.
    func result() async throws -> (Data, URLResponse) {
        let ended: TransferRecord
        do {
            let id = transfer
            ended = try await AppRuntime.shared.wait { transaction in
                // A row that is gone was cancelled and pruned.
                guard let record = try transaction.transfer(id) else { throw URLError(.cancelled) }
                return record.state.isTerminal ? record : nil
            }
        } catch is CancellationError {
            throw URLError(.cancelled)
        }
        defer { letGo() }
        switch ended.state {
        case .completed:
            guard let response = ended.response, let file = ended.file else { throw URLError(.badServerResponse) }
            let url = AppRuntime.shared.directories.spool.appendingPathComponent(file)
            return (try Data(contentsOf: url), response)
        case .cancelled:
            throw URLError(.cancelled)
        case .failed, .queued, .running, .waiting, .paused:
            throw ended.urlError
        }
    }

    /// The waiter leaves; the connection stays for the grace time.
    func giveUp() {
        CrashPoint.reach("app.waiterLeaving")
        try? AppRuntime.shared.ledger().write { try $0.removeWaiter(waiter, grace: grace, now: Date()) }
        CrashPoint.reach("app.waiterLeft")
    }

    /// The answer was read: nobody needs the transfer any more, unless somebody adopted it.
    private func letGo() {
        try? AppRuntime.shared.ledger().write { try $0.removeWaiter(waiter, grace: 0, now: Date()) }
    }
}

extension TransferRecord {
    var response: HTTPURLResponse? {
        guard let head, let url = URL(string: head.url) ?? URL(string: self.url) else { return nil }
        var fields: [String: String] = [:]
        for header in head.headers {
            let earlier = fields[header.name].map { $0 + ", " } ?? ""
            fields[header.name] = earlier + header.value
        }
        return HTTPURLResponse(url: url, statusCode: head.status, httpVersion: "HTTP/1.1", headerFields: fields)
    }

    var urlError: URLError {
        URLError(
            errorCode.flatMap(URLError.Code.init(rawValue:)) ?? .unknown,
            userInfo: [NSLocalizedDescriptionKey: errorMessage ?? "the transfer failed"])
    }
}
