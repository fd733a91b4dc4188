import CLinux
import Foundation
import Synchronization

/// Ends this process without the exit handlers of libraries.
///
/// The function `exit` would run the exit handlers of libraries while other threads still use these libraries. For example,
/// libcrypto's handler frees data that another thread needs to compute a digest.
package enum ProcessExit {
    private static let cleaning = Mutex<[@Sendable () -> Void]>([])
    /// The actions are also registered with `atexit`, because an app may call `exit`, or return from its main function.
    private static let isRegistered = atexit { ProcessExit.clean() } == 0

    /// Registers an action that runs when this process ends. The action that was registered last runs first.
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

    /// Runs the registered actions, flushes the output, and ends this process. The exit handlers of libraries do not run.
    package static func end(_ code: Int32) -> Never {
        clean()
        clinux_flush_output()
        _exit(code)
    }
}
