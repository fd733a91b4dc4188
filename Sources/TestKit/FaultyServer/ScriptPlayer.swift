import Foundation
import NIOCore
import NIOHTTP1
import ServerScripts

/// Plays a script on a connection, on the event loop. Only one write is running at a time. The next write begins when the kernel
/// has accepted the current write. For a slow client, the server therefore keeps only one piece of the response in memory.
/// `bodyBytesSent` counts only the bytes that the kernel has accepted.
final class ScriptPlayer {
    /// An event for the connection.
    enum Event {
        case wroteStatus(Int)
        case sentBody(Int)
        case stopReading
        /// The next step of the script closes the connection.
        case closing
        /// All steps are done. `isWhole` is `true` if the response has the announced length. `keep` is `true` if the connection
        /// can be used for another request.
        case finished(isWhole: Bool, keep: Bool)
    }

    /// A body that is being sent.
    private struct Emission {
        let payload: Payload
        let delivery: ResponseScript.Delivery
        var offset = 0
        var pieces = 0
    }

    private let channel: any Channel
    private let request: RecordedRequest
    private let gates: GateKeeper
    private let ending: ResponseScript.Ending
    private let clientKeepsAlive: Bool
    private let report: (Event) -> Void
    private var steps: ArraySlice<ResponseScript.Step>
    private var framing = ResponseFraming()
    private var emission: Emission?
    private var timer: Scheduled<Void>?
    private var ticket: Int?
    private var isOver = false

    init(
        _ script: ResponseScript, for request: RecordedRequest, clientKeepsAlive: Bool, on channel: any Channel,
        gates: GateKeeper, report: @escaping (Event) -> Void
    ) {
        self.channel = channel
        self.request = request
        self.gates = gates
        self.ending = script.ending
        self.clientKeepsAlive = clientKeepsAlive
        self.report = report
        steps = script.steps[...]
    }

    func start() { advance() }

    /// Stops the player because the connection has ended. No more events are reported.
    func abandon() {
        isOver = true
        timer?.cancel()
        if let ticket { gates.forget(ticket) }
    }

    private func advance() {
        guard !isOver else { return }
        if emission != nil { return emit() }
        guard let step = steps.popFirst() else { return conclude() }
        perform(step)
    }

    private func perform(_ step: ResponseScript.Step) {
        switch step {
        case .status(let code, let reason):
            framing.begin(status: code, method: request.method)
            report(.wroteStatus(code))
            write("HTTP/1.1 \(code) \(reason ?? Self.reason(code))\r\n")
        case .headers(let list):
            framing.announce(list)
            write(list.wire)
        case .interim(let code, let list):
            write("HTTP/1.1 \(code) \(Self.reason(code))\r\n\(list.wire)\r\n")
        case .body(let payload, let delivery):
            emission = request.method == "HEAD" ? nil : Emission(payload: payload, delivery: delivery)
            write(framing.endHead())
        case .chunkEnd(let trailers):
            write(framing.endHead() + (request.method == "HEAD" ? "" : "0\r\n\(trailers.wire)\r\n"))
            framing.hasLastChunk = true
        case .resource(let file):
            steps = (file.answer(method: request.method, headers: request.headers) + steps)[...]
            advance()
        case .raw(let payload):
            framing.isForeign = true
            emission = Emission(payload: payload, delivery: .atOnce)
            emit()
        case .delay(let seconds):
            wait(seconds)
        case .hold(let gate):
            hold(at: gate)
        case .stopReading:
            report(.stopReading)
            advance()
        case .stall:
            break
        case .cut:
            report(.closing)
            cut()
        case .reset:
            report(.closing)
            reset()
        }
    }

    private func emit() {
        guard var current = emission else { return }
        let size = current.delivery.size(ofPiece: current.pieces)
        let bytes = current.payload.read(at: current.offset, length: size)
        guard !bytes.isEmpty else {
            emission = nil
            return advance()
        }
        current.offset += bytes.count
        current.pieces += 1
        emission = current
        let isLast = current.offset >= current.payload.count
        let pause = isLast ? 0 : current.delivery.interval
        var buffer = channel.allocator.buffer(capacity: bytes.count + 16)
        if current.delivery.isChunked { buffer.writeString(String(bytes.count, radix: 16) + "\r\n") }
        buffer.writeBytes(bytes)
        if current.delivery.isChunked { buffer.writeString("\r\n") }
        write(buffer, bodyBytes: bytes.count, thenWait: pause)
    }

    private func write(_ text: String) {
        guard !text.isEmpty else { return resume() }
        write(ByteBuffer(string: text), bodyBytes: 0, thenWait: 0)
    }

    private func write(_ buffer: ByteBuffer, bodyBytes: Int, thenWait pause: Double) {
        channel.writeAndFlush(buffer).assumeIsolated().whenComplete { [self] result in
            // If a write failed, the connection ends soon. `ConnectionHandler` then records the outcome.
            guard case .success = result, !isOver else { return }
            if bodyBytes > 0 {
                framing.sent += bodyBytes
                report(.sentBody(bodyBytes))
            }
            if pause > 0 { wait(pause) } else { resume() }
        }
    }

    /// Continues in a new turn of the event loop. Without a new turn, a thousand small pieces would cause a thousand nested
    /// calls.
    private func resume() {
        channel.eventLoop.assumeIsolated().execute { [self] in advance() }
    }

    private func wait(_ seconds: Double) {
        let delay = TimeAmount.nanoseconds(Int64(seconds * 1_000_000_000))
        timer = channel.eventLoop.assumeIsolated().scheduleTask(in: delay) { [self] in advance() }
    }

    private func hold(at gate: String) {
        let eventLoop = channel.eventLoop
        let me = NIOLoopBound(self, eventLoop: eventLoop)
        ticket = gates.wait(at: gate) {
            eventLoop.execute {
                me.value.ticket = nil
                me.value.advance()
            }
        }
    }

    /// Closes the connection. If TLS is used, close_notify is not sent.
    private func cut() { channel.triggerUserOutboundEvent(ConnectionCut(), promise: nil) }

    private func reset() {
        // If the linger time is 0 seconds, close() sends RST instead of FIN.
        guard let socket = channel as? any SocketOptionProvider else { return cut() }
        socket.setSoLinger(linger(l_onoff: 1, l_linger: 0)).assumeIsolated().whenComplete { [self] _ in cut() }
    }

    /// Returns the usual reason phrase for a status. NIO has no phrase for the status 103.
    private static func reason(_ code: Int) -> String {
        code == 103 ? "Early Hints" : HTTPResponseStatus(statusCode: code).reasonPhrase
    }

    private func conclude() {
        let head = framing.endHead()
        guard head.isEmpty else { return write(head) }
        isOver = true
        report(.finished(isWhole: framing.isWhole, keep: isFitForMore))
    }

    private var isFitForMore: Bool {
        switch ending {
        case .keepOpen: true
        case .close: false
        case .automatic: framing.isDelimited && !framing.announcesClose && clientKeepsAlive
        }
    }
}
