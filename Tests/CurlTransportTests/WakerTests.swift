import Synchronization
import Testing
import TransferMachines

@testable import CurlTransport

@Suite(.timeLimit(.minutes(30))) struct WakerTests {
    /// Returns a waker that receives a descriptor only after the given number of failures.
    private static func waker(failures: Int) -> Waker {
        let left = Mutex(failures)
        return Waker {
            let fails = left.withLock { left in
                left -= 1
                return left >= 0
            }
            return fails ? -1 : Waker.eventDescriptor()
        }
    }

    @Test(arguments: [0, 1, 2, 1_000])
    func `a transfer starts although no descriptor was free when the transport began`(_ failures: Int) async {
        let server = ScriptedServer { client in
            _ = client.readHead()
            client.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        }
        let (ends, continuation) = AsyncStream.makeStream(of: WireEnd.self)
        let transport = CurlTransport(
            handler: { if case .ended(_, let end) = $0 { continuation.yield(end) } }, userAgent: "test",
            waker: Self.waker(failures: failures))
        defer { transport.stop() }
        var iterator = ends.makeAsyncIterator()
        // Before the second start, the thread sleeps and must be woken.
        for number in 1...2 {
            transport.start(
                AttemptID(transfer: Int64(number), number: 1), WireRequest(method: "GET", url: server.url), source: nil,
                sink: Memory())
            let end = await iterator.next()
            #expect(end?.head?.status == 200 && end?.failure == nil)
        }
    }

    @Test func `a descriptor that is made late ends the sleep in which it was made`() {
        let waker = Self.waker(failures: 1)
        let queue = CommandQueue(waker: waker)
        let began = ContinuousClock.now
        // At the first call, the waker has no descriptor.
        waker.wake()
        _ = queue.wait(milliseconds: 600_000)
        waker.wake()
        _ = queue.wait(milliseconds: 600_000)
        #expect(began.duration(to: .now) < .seconds(300))
    }
}
