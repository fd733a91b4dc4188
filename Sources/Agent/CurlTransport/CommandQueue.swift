import CLibcurl
import COpenSSL
import Synchronization
import TransferMachines

/// A command to the transport's thread.
enum TransportCommand: Sendable {
    case start(AttemptID, WireRequest, (any BodySource)?, any BodySink)
    case cancel(AttemptID)
    /// A sink or a source that made the transfer pause is ready again.
    case continueWork(AttemptID)
}

/// The queue of commands to the transport's thread. A lock protects the list of commands, and each new command wakes the thread.
final class CommandQueue: Sendable {
    private struct State {
        var commands: [TransportCommand] = []
        var isStopping = false
    }

    // The compiler sees this as unsafe, but only the transport's thread uses it.
    nonisolated(unsafe) let multi: UnsafeMutableRawPointer
    private let state = Mutex(State())
    private let waker: Waker

    static let globalInit: CURLcode = {
        // Disables libcrypto's exit handler, which frees data that the transport's thread encrypts with: an app may call `exit` at any
        // time.
        OPENSSL_init_crypto(UInt64(OPENSSL_INIT_NO_ATEXIT), nil)
        return curl_global_init(Int(CURL_GLOBAL_ALL))
    }()

    init(waker: Waker) {
        self.waker = waker
        precondition(Self.globalInit == CURLE_OK, "libcurl cannot start")
        guard let multi = curl_multi_init() else { fatalError("libcurl has no memory for a multi handle") }
        self.multi = multi
    }

    /// Adds a command. Returns `false` if the transport is stopped and the command was not added.
    func append(_ command: TransportCommand) -> Bool {
        state.withLock { state in
            guard !state.isStopping else { return false }
            state.commands.append(command)
            waker.wake()
            return true
        }
    }

    /// Requests the stop. Returns `false` if the stop was requested before.
    func stop() -> Bool {
        state.withLock { state in
            guard !state.isStopping else { return false }
            state.isStopping = true
            waker.wake()
            return true
        }
    }

    /// Lets the transport's thread sleep until there is work.
    func wait(milliseconds: Int32) -> CURLMcode { waker.wait(multi, milliseconds: milliseconds) }

    /// Removes and returns all commands in the queue, and whether the transport stops after these commands.
    func drain() -> (commands: [TransportCommand], isStopping: Bool) {
        state.withLock { state in
            defer { state.commands.removeAll() }
            return (state.commands, state.isStopping)
        }
    }
}
