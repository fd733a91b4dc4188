import CLibcurl
import Foundation
import Glibc
import Synchronization
import TransferMachines

/// What a web socket tells, in order; the end is the last of it, and comes once.
package enum WebSocketEvent: Sendable {
    case opened(subprotocol: String?, ResponseHead)
    /// Counts as untaken until ``WebSocketConnection/took(_:)``.
    case message(WebSocketMachine.Message)
    /// The message of this number is with the system, whole.
    case sent(Int, byteCount: Int)
    /// The server answered the ping of this number.
    case answered(ping: Int)
    case ended(WebSocketEnd)
}

/// How a web socket ended.
package enum WebSocketEnd: Equatable, Sendable {
    /// Somebody had said so.
    case closed(code: Int, reason: Data)
    case failed(WebSocketMachine.Failure)
    /// There was no connection, or no answer in time.
    case noConnection(WireFailure)
    case cancelled
}

/// A connection that carries messages both ways: libcurl makes it, with whatever proxies and TLS it takes; a thread of its own speaks the
/// WebSocket protocol over it, and sleeps while nothing moves.
///
/// Debian's libcurl knows no `ws` protocol (7.88 has it as an experiment that is not built), so frames are the machine's.
package final class WebSocketConnection: Sendable {
    private let inbox: WebSocketInbox
    private let request: WireRequest
    private let handshake: WebSocketHandshake
    private let options: RequestOptions

    /// - Parameters:
    ///   - request: the address as http or https, and how long connecting and the answer to the handshake may take.
    ///   - handshake: for the same address.
    package convenience init(_ request: WireRequest, _ handshake: WebSocketHandshake, maximumMessageSize: Int) {
        self.init(request, handshake, maximumMessageSize: maximumMessageSize, certificateAuthorities: nil)
    }

    /// - Parameter certificateAuthorities: a file of certificates to trust instead of the system's, for tests: TLS is
    ///   always verified.
    init(
        _ request: WireRequest, _ handshake: WebSocketHandshake, maximumMessageSize: Int, certificateAuthorities: String?
    ) {
        (self.request, self.handshake) = (request, handshake)
        inbox = WebSocketInbox(maximumMessageSize: maximumMessageSize)
        options = RequestOptions(userAgent: "", certificateAuthorities: certificateAuthorities)
    }

    /// Connects. Once.
    ///
    /// - Parameter handler: called on the connection's thread, in order; must not block.
    package func begin(_ handler: @escaping @Sendable (WebSocketEvent) -> Void) {
        let thread = Boot.spawn(
            Boot { [inbox, request, handshake, options] in
                WebSocketLoop(inbox, request, handshake, options, handler).run()
            })
        pthread_detach(thread)
    }

    deinit { cancel() }

    /// In order, once it is open. `sent` comes with the number; after the end it does not.
    package func send(_ message: WebSocketMachine.Message, _ number: Int) { inbox.append(.send(message, number)) }

    /// Asks the server for a sign of life.
    package func ping(_ number: Int) { inbox.append(.ping(number)) }

    /// Says the end, after what was sent before. Before it is open it is a cancellation.
    package func close(code: Int, reason: Data) { inbox.append(.close(code: code, reason: reason)) }

    /// Ends the connection at once, and says nothing.
    package func cancel() { inbox.append(.cancel) }

    /// A message was told and is with its reader: the server may go on where it was made to wait.
    package func took(_ message: WebSocketMachine.Message) { inbox.took(message) }

    /// While it is held nothing is read.
    package func hold(_ isHeld: Bool) { inbox.hold(isHeld) }

    package func limit(messageSize: Int) { inbox.limit(messageSize: messageSize) }
}

/// The way into the connection's thread: wishes under a lock, and libcurl's wake-up.
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

    /// Bytes told and not taken, at which the server is made to wait.
    private static let backlogLimit = 1 << 20
    /// What a message costs beside its bytes.
    private static let overhead = 64

    // Unsafe only to the compiler, because no thread but the connection's uses it.
    nonisolated(unsafe) let multi: UnsafeMutableRawPointer
    let waker = Waker()
    private let state: Mutex<State>

    init(maximumMessageSize: Int) {
        precondition(CommandQueue.globalInit == CURLE_OK, "libcurl cannot start")
        guard let multi = curl_multi_init() else { fatalError("libcurl has no memory for a multi handle") }
        self.multi = multi
        state = Mutex(State(maximumMessageSize: maximumMessageSize))
    }

    deinit { curl_multi_cleanup(multi) }

    /// Wakes the thread, if the change is one that it waits for.
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

    func hold(_ isHeld: Bool) {
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

    /// Everything wished so far, and the longest message that is taken.
    func take() -> (commands: [Command], maximumMessageSize: Int) {
        state.withLock { state in
            defer { state.commands = [] }
            return (state.commands, state.maximumMessageSize)
        }
    }

    func noteUntaken(_ message: WebSocketMachine.Message) {
        state.withLock { $0.untaken += message.byteCount + Self.overhead }
    }

    /// Nobody takes what comes.
    var isFull: Bool { state.withLock { $0.isHeld || $0.untaken > Self.backlogLimit } }

    /// No wake-up comes from here on.
    func stop() { state.withLock { ($0.isOver, $0.commands) = (true, []) } }
}
