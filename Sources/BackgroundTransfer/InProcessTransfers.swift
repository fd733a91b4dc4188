import CurlTransport
import Foundation
import FoundationNetworking
import Synchronization
import TransferMachines

/// Ordinary sessions: the same engine as the agent's, in this process, one attempt per request.
final class InProcessTransfers: SessionEngine {

    private struct Running {
        let sink: MemorySink
        let continuation: CheckedContinuation<WireEnd, Never>
    }

    private let running = Mutex<[Int64: Running]>([:])
    private let last = Mutex<Int64>(0)
    private let transport = Mutex<CurlTransport?>(nil)
    private let configuration: URLSessionConfiguration

    /// Bytes of an answer kept in memory when the configuration says nothing.
    private static let memoryLimit: Int64 = 64 << 20

    init(configuration: URLSessionConfiguration) { self.configuration = configuration }

    deinit { transport.withLock { $0 }?.stop() }

    func data(for request: URLRequest) async throws -> (Data, URLResponse) {
        let order = try Order(request, configuration)
        let number = last.withLock { last -> Int64 in
            last += 1
            return last
        }
        let attempt = AttemptID(transfer: number, number: 1)
        let request = WireRequest(
            method: order.method, url: order.url, headers: order.headers,
            idleTimeout: order.idleTimeout,
            connectTimeout: configuration.timeoutIntervalForRequest,
            maximumBodyBytes: configuration.maximumBodyBytes ?? Self.memoryLimit)
        let sink = MemorySink()
        let source = order.body.map(DataSource.init)
        let transport = engine()
        let end = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                running.withLock { $0[number] = Running(sink: sink, continuation: continuation) }
                transport.start(attempt, request, source: source, sink: sink)
                // A cancellation that came before the start found nothing to cancel.
                if Task.isCancelled { transport.cancel(attempt) }
            }
        } onCancel: {
            transport.cancel(attempt)
        }
        if let failure = end.failure { throw Self.error(for: failure) }
        guard let head = end.head, let url = URL(string: head.url) ?? URL(string: order.url),
            let response = HTTPURLResponse(
                url: url, statusCode: head.status, httpVersion: "HTTP/1.1",
                headerFields: Dictionary(head.headers.map { ($0.name, $0.value) }, uniquingKeysWith: { $0 + ", " + $1 }))
        else { throw URLError(.badServerResponse) }
        return (sink.data, response)
    }

    // MARK: Not there yet

    private static let unsupported = URLError(
        .unsupportedURL, userInfo: [NSLocalizedDescriptionKey: "tasks exist for background sessions only, so far"])

    func nextTaskIdentifier() -> Int {
        last.withLock { last in
            last += 1
            return Int(last)
        }
    }

    func add(_ task: URLSessionTask) { task.facts.withLock { $0.error = Self.unsupported } }

    func resume(_ task: URLSessionTask) {
        task.facts.withLock { $0.isCompleted = true }
        guard let completion = task.facts.withLock({ $0.completion }) else { return }
        task.session.delegateQueue.addOperation { completion(TransferEnd(error: Self.unsupported)) }
    }

    func suspend(_ task: URLSessionTask) {}
    func cancel(_ task: URLSessionTask) {}
    func cancelProducingResumeData(_ task: URLSessionTask) async -> Data? { nil }
    func update(_ task: URLSessionTask) {}

    func status(of task: URLSessionTask) -> TaskStatus {
        TaskStatus(state: task.facts.withLock { $0.isCompleted } ? .completed : .suspended, error: Self.unsupported)
    }

    func allTasks() -> [URLSessionTask] { [] }
    func invalidate(cancelling: Bool) {}
    func download(_ source: DownloadSource) async throws -> (URL, URLResponse) { throw Self.unsupported }
    func upload(for request: URLRequest, from body: UploadBody) async throws -> (Data, URLResponse) { throw Self.unsupported }

    private func engine() -> CurlTransport {
        transport.withLock { transport in
            if let transport { return transport }
            let made = CurlTransport(handler: { [weak self] event in self?.hear(event) }, userAgent: "stormy")
            transport = made
            return made
        }
    }

    private func hear(_ event: TransportEvent) {
        switch event {
        case .progress: return
        case .ended(let attempt, let end):
            let ended = running.withLock { $0.removeValue(forKey: attempt.transfer) }
            ended?.continuation.resume(returning: end)
        }
    }

    private static func error(for failure: WireFailure) -> URLError {
        let trouble = TransferTrouble(failure)
        return URLError(URLError.Code(rawValue: trouble.code) ?? .unknown, userInfo: [NSLocalizedDescriptionKey: trouble.message])
    }
}

private final class MemorySink: BodySink {
    private let bytes = Mutex(Data())

    var data: Data { bytes.withLock { $0 } }

    func receive(head: ResponseHead) -> Bool { true }

    func write(_ piece: UnsafeRawBufferPointer) -> Bool {
        bytes.withLock { $0.append(contentsOf: piece) }
        return true
    }
}

private final class DataSource: BodySource {
    private let data: Data
    private let position = Mutex(0)

    init(_ data: Data) { self.data = data }

    var byteCount: Int64 { Int64(data.count) }

    func read(into buffer: UnsafeMutableRawBufferPointer) -> Int? {
        position.withLock { position in
            let count = min(buffer.count, data.count - position)
            data.copyBytes(to: buffer, from: data.startIndex + position..<data.startIndex + position + count)
            position += count
            return count
        }
    }

    func rewind() -> Bool {
        position.withLock { $0 = 0 }
        return true
    }
}
