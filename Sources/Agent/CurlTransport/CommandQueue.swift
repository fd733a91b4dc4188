import CLibcurl
import COpenSSL
import Synchronization
import TransferMachines

/// A command to the transport's thread.
enum TransportCommand: Sendable {
    case start(AttemptID, WireRequest, (any BodySource)?, any BodySink)
    case cancel(AttemptID)
    /// The sink or the source of the data paused the transfer earlier, and is ready again.
    case continueWork(AttemptID)
}

/// The queue of commands to the transport's thread. A lock protects the list of commands, and each new command wakes the thread.
final class CommandQueue: Sendable {
    private struct State {
        var commands: [TransportCommand] = []
        var isStopping = false
    }

    // The compiler does not check this property, but only the transport's thread uses it.
    nonisolated(unsafe) let multi: UnsafeMutableRawPointer
    private let state = Mutex(State())
    private let waker: Waker

    static let globalInit: CURLcode = {
        // Disables libcrypto's exit handler, because an app may call `exit` at any time. The handler would free data that the
        // transport's thread needs for encryption.
        OPENSSL_init_crypto(UInt64(OPENSSL_INIT_NO_ATEXIT), nil)
        return curl_global_init(Int(CURL_GLOBAL_ALL))
    }()

    init(waker: Waker) {
        self.waker = waker
        precondition(Self.globalInit == CURLE_OK, "libcurl cannot start")
        guard let multi = curl_multi_init() else { fatalError("libcurl cannot allocate a multi handle") }
        self.multi = multi
    }

    /// Adds a command. Returns `false` if the transport is stopped. If the transport is stopped, the command is not added.
    func append(_ command: TransportCommand) -> Bool {
        state.withLock { state in
            guard !state.isStopping else { return false }
            state.commands.append(command)
            waker.wake()
            return true
        }
    }

    /// Requests that the transport stops. Returns `false` if a stop was already requested.
    func stop() -> Bool {
        state.withLock { state in
            guard !state.isStopping else { return false }
            state.isStopping = true
            waker.wake()
            return true
        }
    }

    /// Lets the transport's thread sleep until work arrives.
    func wait(milliseconds: Int32) -> CURLMcode { waker.wait(multi, milliseconds: milliseconds) }

    /// Removes and returns all queued commands, and returns whether the transport has to stop after these commands.
    func drain() -> (commands: [TransportCommand], isStopping: Bool) {
        state.withLock { state in
            defer { state.commands.removeAll() }
            return (state.commands, state.isStopping)
        }
    }
}
