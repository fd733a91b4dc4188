import CurlTransport
import Foundation
import FoundationNetworking
import Synchronization
import TransferMachines

/// Ordinary sessions: the same engine as the agent's, in this process, one attempt per request.
final class InProcessTransfers: Sendable {
    static let shared = InProcessTransfers()

    private struct Running {
        let sink: MemorySink
        let continuation: CheckedContinuation<WireEnd, Never>
    }

    private let running = Mutex<[Int64: Running]>([:])
    private let last = Mutex<Int64>(0)
    private let transport = Mutex<CurlTransport?>(nil)

    /// Bytes of an answer kept in memory when the configuration says nothing.
    private static let memoryLimit: Int64 = 64 << 20

    private init() {}

    func data(for order: URLSession.Order, configuration: URLSessionConfiguration) async throws -> (Data, URLResponse) {
        let number = last.withLock { last -> Int64 in
            last += 1
            return last
        }
        let attempt = AttemptID(transfer: number, number: 1)
        let request = WireRequest(
            method: order.method, url: order.url, headers: order.headers,
            idleTimeout: configuration.timeoutIntervalForRequest,
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
