import Synchronization
import TransferMachines

@testable import CurlTransport

/// A sink that stores response headers and bytes.
final class Memory: BodySink {
    struct Kept {
        var heads: [ResponseHead] = []
        var bytes: [UInt8] = []
    }
    private let kept = Mutex(Kept())
    private let limit: Int
    private let acceptsHead: Bool

    init(limit: Int = .max, acceptsHead: Bool = true) {
        self.limit = limit
        self.acceptsHead = acceptsHead
    }

    var bytes: [UInt8] { kept.withLock { $0.bytes } }
    var text: String { String(decoding: bytes, as: UTF8.self) }
    var heads: [ResponseHead] { kept.withLock { $0.heads } }

    func receive(head: ResponseHead) -> Bool {
        kept.withLock { $0.heads.append(head) }
        return acceptsHead
    }

    func write(_ bytes: UnsafeRawBufferPointer) -> Bool {
        kept.withLock {
            $0.bytes += bytes
            return $0.bytes.count <= limit
        }
    }
}

/// A source of given bytes. The source can announce a wrong number of bytes, or fail.
final class Bytes: BodySource {
    let byteCount: Int64
    private let bytes: [UInt8]
    private let fails: Bool
    private let offset = Mutex(0)

    init(_ bytes: [UInt8], announced: Int? = nil, fails: Bool = false) {
        self.bytes = bytes
        byteCount = Int64(announced ?? bytes.count)
        self.fails = fails
    }

    func read(into buffer: UnsafeMutableRawBufferPointer) -> Int? {
        guard !fails else { return nil }
        return offset.withLock { offset in
            let count = min(buffer.count, bytes.count - offset)
            buffer.copyBytes(from: bytes[offset..<offset + count])
            offset += count
            return count
        }
    }

    func rewind() -> Bool {
        offset.withLock { $0 = 0 }
        return true
    }
}

/// A transport, with methods that wait for its events.
final class Bench: Sendable {
    let transport: CurlTransport
    private let events: AsyncStream<TransportEvent>

    init(certificateAuthorities: String? = nil) {
        let (events, continuation) = AsyncStream<TransportEvent>.makeStream()
        self.events = events
        transport = CurlTransport(
            handler: { continuation.yield($0) }, userAgent: "Bench/1", certificateAuthorities: certificateAuthorities)
    }

    /// Waits until `count` attempts have ended. Returns their results, and the progress that was reported before the last
    /// attempt ended.
    func ends(_ count: Int) async -> (ends: [AttemptID: [WireEnd]], progress: [(AttemptID, Int64, Int64)]) {
        var ends: [AttemptID: [WireEnd]] = [:]
        var progress: [(AttemptID, Int64, Int64)] = []
        var left = count
        for await event in events {
            switch event {
            case .progress(let id, let sent, let received):
                progress.append((id, sent, received))
            case .resumption: break
            case .ended(let id, let end):
                ends[id, default: []].append(end)
                left -= 1
            }
            if left == 0 { break }
        }
        return (ends, progress)
    }

    /// Runs one attempt from start to end.
    func run(_ request: WireRequest, source: (any BodySource)? = nil, sink: Memory = Memory()) async -> WireEnd {
        let id = AttemptID(transfer: 1, number: 1)
        transport.start(id, request, source: source, sink: sink)
        return await ends(1).ends[id]![0]
    }
}
