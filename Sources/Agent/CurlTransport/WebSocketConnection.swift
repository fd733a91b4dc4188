import CLibcurl
import Foundation
import Glibc
import Synchronization
import TransferMachines

/// The events of a web socket. The last event is `ended`, which occurs once.
package enum WebSocketEvent: Sendable {
    case opened(subprotocol: String?, ResponseHead)
    /// A message arrived. The message counts as unread until the app calls ``WebSocketConnection/took(_:)``.
    case message(WebSocketMachine.Message)
    /// The system accepted all bytes of the message with this number.
    case sent(Int, byteCount: Int)
    /// The server responded to the ping with this number.
    case answered(ping: Int)
    case ended(WebSocketEnd)
}

/// The reason why a web socket ended.
package enum WebSocketEnd: Equatable, Sendable {
    /// The app or the server closed the connection with a close frame.
    case closed(code: Int, reason: Data)
    case failed(WebSocketMachine.Failure)
    /// The connection failed, or the server did not respond in time.
    case noConnection(WireFailure)
    case cancelled
}

/// A connection that transfers messages in both directions. libcurl establishes the connection and supports proxies and TLS. A
/// separate thread runs the WebSocket protocol on the connection, and sleeps while no data is transferred.
///
/// `WebSocketMachine` creates the frames, because Debian's libcurl does not support the `ws` protocol. In libcurl 7.88 this
/// protocol is experimental and is not part of the build.
package final class WebSocketConnection: Sendable {
    private let inbox: WebSocketInbox
    private let request: WireRequest
    private let handshake: WebSocketHandshake
    private let options: RequestOptions

    /// - Parameters:
    ///   - request: the address with the scheme http or https, and the time limits for the connection and for the response to the
    ///     handshake.
    ///   - handshake: the handshake for this address.
    package convenience init(_ request: WireRequest, _ handshake: WebSocketHandshake, maximumMessageSize: Int) {
        self.init(request, handshake, maximumMessageSize: maximumMessageSize, certificateAuthorities: nil)
    }

    /// - Parameter certificateAuthorities: a file of certificates that tests use instead of the system's certificates. TLS
    ///   certificates are always verified.
    init(
        _ request: WireRequest, _ handshake: WebSocketHandshake, maximumMessageSize: Int, certificateAuthorities: String?
    ) {
        (self.request, self.handshake) = (request, handshake)
        inbox = WebSocketInbox(maximumMessageSize: maximumMessageSize)
        options = RequestOptions(userAgent: "", certificateAuthorities: certificateAuthorities)
    }

    /// Opens the connection. Call this method only once.
    ///
    /// - Parameter handler: called on the connection's thread, in the order of the events. The handler must not block.
    package func begin(_ handler: @escaping @Sendable (WebSocketEvent) -> Void) {
        let thread = Boot.spawn(
            Boot { [inbox, request, handshake, options] in
                WebSocketLoop(inbox, request, handshake, options, handler).run()
            })
        pthread_detach(thread)
    }

    deinit { cancel() }

    /// Sends a message after the connection is open. Messages are sent in the order of the calls. The event `sent` reports the
    /// number, unless the connection has ended.
    package func send(_ message: WebSocketMachine.Message, _ number: Int) { inbox.append(.send(message, number)) }

    /// Sends a ping to the server.
    package func ping(_ number: Int) { inbox.append(.ping(number)) }

    /// Closes the connection after all earlier messages were sent. If the connection is not open yet, it is cancelled.
    package func close(code: Int, reason: Data) { inbox.append(.close(code: code, reason: reason)) }

    /// Ends the connection immediately, without a close frame.
    package func cancel() { inbox.append(.cancel) }

    /// Records that the app read a message. If the server had to wait, it can continue.
    package func took(_ message: WebSocketMachine.Message) { inbox.took(message) }

    /// Pauses or continues the reading of messages.
    package func setHeld(_ isHeld: Bool) { inbox.setHeld(isHeld) }

    package func limit(messageSize: Int) { inbox.limit(messageSize: messageSize) }
}

/// The queue of commands for the connection's thread. A lock protects the queue, and a ``Waker`` wakes the thread.
final class WebSocketInbox: Sendable {
    enum Command: Sendable {
        case send(WebSocketMachine.Message, Int)
        case ping(Int)
        case close(code: Int, reason: Data)
        case cancel
    }

    private struct State {
        var commands: [Command] = []
        var untaken = 0
        var isHeld = false
        var maximumMessageSize: Int
        var isOver = false
    }

    /// The maximum number of delivered and unread bytes. If more bytes are unread, the server has to wait.
    private static let backlogLimit = 1 << 20
    /// The number of bytes by which each message increases the number of unread bytes, in addition to the content of the message.
    private static let overhead = 64

    // The compiler does not check this property, but only the connection's thread uses it.
    nonisolated(unsafe) let multi: UnsafeMutableRawPointer
    let waker = Waker()
    private let state: Mutex<State>

    init(maximumMessageSize: Int) {
        precondition(CommandQueue.globalInit == CURLE_OK, "libcurl cannot start")
        guard let multi = curl_multi_init() else { fatalError("libcurl cannot allocate a multi handle") }
        self.multi = multi
        state = Mutex(State(maximumMessageSize: maximumMessageSize))
    }

    deinit { curl_multi_cleanup(multi) }

    /// Changes the state of the queue. Wakes the thread if the thread has to react to this change.
    private func change(_ body: (inout State) -> Bool) {
        state.withLock { state in
            guard !state.isOver else { return }
            if body(&state) { waker.wake() }
        }
    }

    func append(_ command: Command) {
        change { state in
            state.commands.append(command)
            return true
        }
    }

    func took(_ message: WebSocketMachine.Message) {
        change { state in
            let wasFull = state.untaken > Self.backlogLimit
            state.untaken -= message.byteCount + Self.overhead
            return wasFull && state.untaken <= Self.backlogLimit
        }
    }

    func setHeld(_ isHeld: Bool) {
        change { state in
            defer { state.isHeld = isHeld }
            return state.isHeld != isHeld
        }
    }

    func limit(messageSize: Int) {
        change { state in
            state.maximumMessageSize = messageSize
            return true
        }
    }

    // MARK: On the thread

    /// Removes and returns all queued commands, and returns the maximum size of a message.
    func drain() -> (commands: [Command], maximumMessageSize: Int) {
        state.withLock { state in
            defer { state.commands = [] }
            return (state.commands, state.maximumMessageSize)
        }
    }

    func recordUnread(_ message: WebSocketMachine.Message) {
        state.withLock { $0.untaken += message.byteCount + Self.overhead }
    }

    /// `true` if no more messages can be read. The reason is that the reading is paused, or that the app has not read the earlier
    /// messages.
    var isFull: Bool { state.withLock { $0.isHeld || $0.untaken > Self.backlogLimit } }

    /// Stops this queue. After this call, the queue does not wake the thread.
    func stop() { state.withLock { ($0.isOver, $0.commands) = (true, []) } }
}
