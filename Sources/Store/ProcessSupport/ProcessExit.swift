import CLinux
import Foundation
import Synchronization

/// The end of this process.
///
/// `exit` would run the exit handlers of libraries while other threads use those libraries. libcrypto's handler frees what a thread hashes
/// with.
package enum ProcessExit {
    private static let cleaning = Mutex<[@Sendable () -> Void]>([])
    /// Code of other authors may call `exit`, or return from its main function.
    private static let isRegistered = atexit { ProcessExit.clean() } == 0

    /// Has an action run when this process ends, the latest first.
    package static func onExit(_ action: @escaping @Sendable () -> Void) {
        _ = isRegistered
        cleaning.withLock { $0.append(action) }
    }

    private static func clean() {
        let actions = cleaning.withLock { cleaning in
            defer { cleaning = [] }
            return cleaning
        }
        for action in actions.reversed() { action() }
    }

    /// Ends this process: runs its own actions, writes what was printed, and runs no exit handler of a library.
    package static func leave(_ code: Int32) -> Never {
        clean()
        clinux_flush_output()
        _exit(code)
    }
}
