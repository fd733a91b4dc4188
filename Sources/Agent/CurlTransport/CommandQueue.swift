import CLibcurl
import COpenSSL
import Synchronization
import TransferMachines

/// What other threads ask of the transport's thread.
enum TransportCommand: Sendable {
    case start(AttemptID, WireRequest, (any BodySource)?, any BodySink)
    case cancel(AttemptID)
    /// What was full, or not ready, is so no more.
    case goOn(AttemptID)
}

/// The way into the transport's thread: a list under a lock, and a wake-up.
final class CommandQueue: Sendable {
    private struct State {
        var commands: [TransportCommand] = []
        var isStopping = false
    }

    // Unsafe only to the compiler, because no thread but the transport's uses it.
    nonisolated(unsafe) let multi: UnsafeMutableRawPointer
    private let state = Mutex(State())
    private let waker: Waker

    static let globalInit: CURLcode = {
        // Without libcrypto's exit handler, which frees what the transport's thread encrypts with: an app may call `exit` at any moment.
        OPENSSL_init_crypto(UInt64(OPENSSL_INIT_NO_ATEXIT), nil)
        return curl_global_init(Int(CURL_GLOBAL_ALL))
    }()

    init(waker: Waker) {
        self.waker = waker
        precondition(Self.globalInit == CURLE_OK, "libcurl cannot start")
        guard let multi = curl_multi_init() else { fatalError("libcurl has no memory for a multi handle") }
        self.multi = multi
    }

    /// `false`: the transport is stopped, the command was not taken.
    func append(_ command: TransportCommand) -> Bool {
        state.withLock { state in
            guard !state.isStopping else { return false }
            state.commands.append(command)
            waker.wake()
            return true
        }
    }

    /// `false`: somebody asked before.
    func stop() -> Bool {
        state.withLock { state in
            guard !state.isStopping else { return false }
            state.isStopping = true
            waker.wake()
            return true
        }
    }

    /// Sleeps until there is something to do, on the transport's thread.
    func wait(milliseconds: Int32) -> CURLMcode { waker.wait(multi, milliseconds: milliseconds) }

    /// Everything asked so far, and whether to stop after it.
    func take() -> (commands: [TransportCommand], isStopping: Bool) {
        state.withLock { state in
            defer { state.commands.removeAll() }
            return (state.commands, state.isStopping)
        }
    }
}
