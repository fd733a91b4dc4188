import CLibcurl
import Foundation
import Glibc
import TransferMachines

/// The loop of a web socket's thread, which connects, runs the `WebSocketMachine` and transfers data. The thread sleeps in a
/// single call.
final class WebSocketLoop {
    /// The maximum number of seconds for which the thread waits for the server's close frame after the app requested the close.
    private static let closeTimeout: Double = 10
    /// The maximum number of seconds in which the last bytes are sent.
    private static let flushTimeout: Double = 2
    /// The number of unsent bytes at which no more messages are converted into frames.
    private static let outputLimit = 1 << 20
    /// The number of unsent pongs at which no more data is read from the server.
    private static let pongLimit = 1024
    /// The maximum number of reads before the commands are checked again.
    private static let readsAtOnce = 16

    private enum Phase {
        case connecting
        case talking
        /// The result of the web socket is known, and only the last bytes still have to be sent.
        case flushing(WebSocketEnd)
    }

    private struct Output {
        var bytes: Data
        var offset = 0
        /// The number of the message to which these bytes belong.
        var number: Int?
        var payloadCount = 0
        var isPong = false
    }

    private let inbox: WebSocketInbox
    private let request: WireRequest
    private let handler: @Sendable (WebSocketEvent) -> Void
    private let easy: UnsafeMutableRawPointer?
    private let errorText = UnsafeMutablePointer<CChar>.allocate(capacity: Int(CURL_ERROR_SIZE))
    private var machine: WebSocketMachine
    private var phase = Phase.connecting
    private var descriptor: Int32 = -1
    private var outputs: [Output] = []
    private var outputBytes = 0
    private var pongs = 0
    /// The commands that wait until the connection is open, or until fewer bytes are unsent.
    private var waiting: [WebSocketInbox.Command] = []
    /// `true` if the connection is broken, so that no more bytes can be written.
    private var isBroken = false
    /// `true` if more data may be available although the socket does not report this.
    private var hasMore = false
    /// The time at which the current phase must end, in seconds of the monotonic clock.
    private var deadline: Double?
    private var buffer = [UInt8](repeating: 0, count: 64 << 10)

    init(
        _ inbox: WebSocketInbox, _ request: WireRequest, _ handshake: WebSocketHandshake, _ options: RequestOptions,
        _ handler: @escaping @Sendable (WebSocketEvent) -> Void
    ) {
        (self.inbox, self.request, self.handler) = (inbox, request, handler)
        // The real maximum size of a message arrives together with the first commands.
        machine = WebSocketMachine(handshake, maximumMessageSize: 0)
        easy = curl_easy_init()
        errorText[0] = 0
        guard let easy else { return }
        options.applyBareConnection(to: easy, request)
        _ = clibcurl_set_pointer(easy, CURLOPT_ERRORBUFFER, errorText)
    }

    func run() {
        var end: WebSocketEnd? = request.hasUsableURL && !request.hasBrokenHeader ? nil : .noConnection(.unsupportedURL)
        if end == nil, let easy, curl_multi_add_handle(inbox.multi, easy) == CURLM_OK {
            while end == nil {
                end = readCommands() ?? step() ?? late()
                if end == nil { end = sleep() }
            }
        }
        inbox.stop()
        if let easy {
            // The removal of the handle also closes the connection.
            curl_multi_remove_handle(inbox.multi, easy)
            curl_easy_cleanup(easy)
        }
        errorText.deallocate()
        handler(
            .ended(end ?? .noConnection(.other(code: CURLE_OUT_OF_MEMORY.code, message: "Not enough memory for a connection"))))
    }

    // MARK: Commands

    private func readCommands() -> WebSocketEnd? {
        let (commands, size) = inbox.drain()
        machine.maximumMessageSize = size
        for command in commands {
            if case .cancel = command { return .cancelled }
            waiting.append(command)
        }
        if !machine.isOpen {
            guard !machine.isClosing, waiting.contains(where: { if case .close = $0 { true } else { false } }) else { return nil }
            if case .flushing = phase { return nil }
            return .cancelled
        }
        // The time limit starts when the app requests the close, because the earlier messages may never be sent.
        if deadline == nil, waiting.contains(where: { if case .close = $0 { true } else { false } }) {
            deadline = monotonicSeconds() + Self.closeTimeout
        }
        var count = 0
        for command in waiting {
            guard outputBytes < Self.outputLimit else { break }
            count += 1
            switch command {
            case .send(let message, let number): perform(machine.send(message), number)
            case .ping(let number): perform(machine.ping(number))
            case .close(let code, let reason):
                perform(machine.close(code: code, reason: reason))
            case .cancel: return .cancelled
            }
        }
        waiting.removeFirst(count)
        return nil
    }

    private var requestedClose: (Int, Data)? {
        for case .close(let code, let reason) in waiting { return (code, reason) }
        return nil
    }

    private func perform(_ commands: [WebSocketMachine.Command], _ number: Int? = nil) {
        for command in commands {
            switch command {
            case .ask(let bytes): put(Output(bytes: bytes))
            case .transmit(let frame):
                let bytes = frame.bytes(mask: UInt32.random(in: .min ... .max))
                put(
                    Output(
                        bytes: bytes, number: number, payloadCount: frame.payload.count, isPong: frame.opcode == .pong))
            case .opened(let subprotocol, let head):
                deadline = nil
                handler(.opened(subprotocol: subprotocol, head))
            case .deliver(let message):
                inbox.recordUnread(message)
                handler(.message(message))
            case .answered(let ping): handler(.answered(ping: ping))
            case .closed(let code, let reason): flush(.closed(code: code, reason: reason))
            case .failed(let failure): flush(.failed(failure))
            }
        }
    }

    private func put(_ output: Output) {
        outputs.append(output)
        outputBytes += output.bytes.count
        if output.isPong { pongs += 1 }
    }

    /// Handles the end of the connection. Bytes that wait to be sent are discarded.
    private func lose(isOrderly: Bool = false) {
        perform(machine.ended(isOrderly: isOrderly))
        (outputs, outputBytes, pongs) = ([], 0, 0)
    }

    private func flush(_ end: WebSocketEnd) {
        phase = .flushing(end)
        deadline = monotonicSeconds() + Self.flushTimeout
    }

    // MARK: Bytes

    private func step() -> WebSocketEnd? {
        if case .connecting = phase, let end = connect() { return end }
        guard descriptor >= 0 else { return nil }
        write()
        if case .talking = phase {
            read()
            write()
        }
        if case .flushing(let end) = phase, outputs.isEmpty || isBroken { return end }
        return nil
    }

    private func connect() -> WebSocketEnd? {
        var count: Int32 = 0
        let moved = curl_multi_perform(inbox.multi, &count)
        guard moved == CURLM_OK else {
            return .noConnection(.other(code: moved.code, message: "libcurl's multi handle failed"))
        }
        var left: Int32 = 0
        guard let message = curl_multi_info_read(inbox.multi, &left), message.pointee.msg == CURLMSG_DONE else { return nil }
        let code = clibcurl_message_result(message)
        let socket = clibcurl_active_socket(easy)
        guard code == CURLE_OK, socket >= 0 else {
            let words = String(cString: errorText)
            return .noConnection(
                WireFailure(
                    connecting: code,
                    words.isEmpty ? String(cString: curl_easy_strerror(code)) : String(words.prefix(200))))
        }
        descriptor = socket
        phase = .talking
        deadline = monotonicSeconds() + max(1, min(request.idleTimeout, 86_400))
        perform(machine.connected())
        return nil
    }

    private func write() {
        var done = 0
        defer { outputs.removeFirst(done) }
        while !isBroken, done < outputs.count {
            let output = outputs[done]
            var sent = 0
            let code = output.bytes.withUnsafeBytes { bytes in
                curl_easy_send(easy, bytes.baseAddress?.advanced(by: output.offset), bytes.count - output.offset, &sent)
            }
            guard code == CURLE_OK else {
                // Data that the server sent before it closed the connection is still read.
                if code != CURLE_AGAIN { isBroken = true }
                return
            }
            outputBytes -= sent
            outputs[done].offset += sent
            guard output.offset + sent == output.bytes.count else { continue }
            done += 1
            if output.isPong { pongs -= 1 }
            if let number = output.number { handler(.sent(number, byteCount: output.payloadCount)) }
        }
    }

    private var isReading: Bool {
        guard case .talking = phase else { return false }
        // A broken connection is read to its end, even if the app has too many unread messages. Only data that arrived before the
        // connection broke is left.
        return isBroken || !(machine.isOpen && inbox.isFull) && pongs < Self.pongLimit
    }

    /// Reads the available data, unless the app has too many unread messages.
    private func read() {
        hasMore = false
        for _ in 0..<Self.readsAtOnce {
            guard isReading else { return }
            var count = 0
            let code = buffer.withUnsafeMutableBytes { curl_easy_recv(easy, $0.baseAddress, $0.count, &count) }
            if code == CURLE_AGAIN {
                // A broken connection without more data has reached its end.
                if isBroken { lose() }
                return
            }
            guard code == CURLE_OK, count > 0 else { return lose(isOrderly: code == CURLE_OK) }
            perform(machine.received(Data(buffer[..<count])))
        }
        hasMore = true
    }

    // MARK: Sleeping

    private func late() -> WebSocketEnd? {
        guard let deadline, deadline <= monotonicSeconds() else { return nil }
        switch phase {
        case .connecting: return nil
        case .flushing(let end): return end
        case .talking:
            if machine.isOpen, let (code, reason) = requestedClose {
                // The server accepted no data, so the close frame was not sent.
                perform(machine.close(code: code, reason: reason))
            }
            if !machine.isClosing { return .noConnection(.stalled) }
            lose()
            guard case .flushing(let end) = phase else { return nil }
            return end
        }
    }

    /// Sleeps until the socket is ready or a command arrives. The TLS library has no unread data, because the thread read until
    /// no more data was available.
    private func sleep() -> WebSocketEnd? {
        if case .talking = phase {
            if hasMore { return nil }
            if machine.isOpen, !waiting.isEmpty, outputBytes < Self.outputLimit, !isBroken { return nil }
        }
        var events: Int32 = isReading ? CURL_WAIT_POLLIN : 0
        if descriptor >= 0, !outputs.isEmpty, !isBroken { events |= CURL_WAIT_POLLOUT }
        let entry = curl_waitfd(fd: descriptor, events: Int16(events), revents: 0)
        let left = deadline.map { max(0, min(($0 - monotonicSeconds()) * 1000, 86_400_000)).rounded(.up) }
        // If no event of the socket is needed, the socket is not watched, because a closed connection would be reported
        // repeatedly.
        let isAwaited = descriptor >= 0 && events != 0
        let waited = inbox.waker.wait(
            inbox.multi, milliseconds: left.map { Int32($0) } ?? .max, also: isAwaited ? entry : nil)
        guard waited == CURLM_OK else {
            return .noConnection(.other(code: waited.code, message: "libcurl's multi handle failed"))
        }
        return nil
    }
}
