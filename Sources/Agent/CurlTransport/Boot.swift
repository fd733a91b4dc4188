import Glibc

/// Passes the closure of a loop to the loop's new thread. Foundation's `Thread` is not used, because the agent could not wait for
/// the end of such a thread.
final class Boot {
    private let body: @Sendable () -> Void

    init(_ body: @escaping @Sendable () -> Void) { self.body = body }

    static func spawn(_ boot: Boot) -> pthread_t {
        var thread = pthread_t()
        let context = Unmanaged.passRetained(boot).toOpaque()
        // The new thread inherits this signal mask, and libcurl's resolver threads inherit it from the new thread. Other threads
        // handle the signals of the process. Because the option NOSIGNAL is set, a broken TLS connection may raise SIGPIPE.
        var all = sigset_t()
        var old = sigset_t()
        sigfillset(&all)
        pthread_sigmask(SIG_SETMASK, &all, &old)
        let code = waitingForRoom {
            pthread_create(
                &thread, nil,
                { context in
                    guard let context else { return nil }
                    Unmanaged<Boot>.fromOpaque(context).takeRetainedValue().body()
                    return nil
                }, context)
        }
        pthread_sigmask(SIG_SETMASK, &old, nil)
        precondition(code == 0, "a thread for transfers cannot be started (error \(code))")
        return thread
    }

    /// Repeats the call while the limit of threads of the user or the control group is reached. libdispatch waits in the same
    /// way.
    ///
    /// - Returns: 0, or an error other than `EAGAIN`.
    static func waitingForRoom(pause: UInt32 = 100_000, _ create: () -> Int32) -> Int32 {
        while true {
            let code = create()
            guard code == EAGAIN else { return code }
            usleep(pause)
        }
    }
}
