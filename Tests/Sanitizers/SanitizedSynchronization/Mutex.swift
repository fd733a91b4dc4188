import Glibc

/// A mutex with pthreads that replaces `Synchronization.Mutex` under the thread sanitizer (`-module-alias` in `Package.swift`).
///
/// The sanitizer supports pthreads. The sanitizer observes only a part of the original mutex: the code that is inlined into the
/// project's modules. If a thread waits for the original lock, the thread takes the lock inside the system's library. The
/// sanitizer does not observe this, and would report the thread's reads as races.
// The conformance is unchecked because the lock guards the value.
public struct Mutex<Value: ~Copyable>: ~Copyable, @unchecked Sendable {
    private let lock: UnsafeMutablePointer<pthread_mutex_t>
    private let value: UnsafeMutablePointer<Value>

    public init(_ initial: consuming sending Value) {
        lock = .allocate(capacity: 1)
        pthread_mutex_init(lock, nil)
        value = .allocate(capacity: 1)
        value.initialize(to: initial)
    }

    deinit {
        value.deinitialize(count: 1)
        value.deallocate()
        pthread_mutex_destroy(lock)
        lock.deallocate()
    }

    public borrowing func withLock<Result: ~Copyable, E: Error>(
        _ body: (inout sending Value) throws(E) -> sending Result
    ) throws(E) -> sending Result {
        pthread_mutex_lock(lock)
        defer { pthread_mutex_unlock(lock) }
        return try body(&value.pointee)
    }
}
