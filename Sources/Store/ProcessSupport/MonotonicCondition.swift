import Foundation

/// A lock with a condition variable that uses the monotonic clock. If the wall clock is set back, a wait with a time limit does
/// not become longer. With `NSCondition`, a wait would become longer.
package final class MonotonicCondition: @unchecked Sendable {  // Unchecked, because threads can share a mutex and a condition
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)

    package init() {
        pthread_mutex_init(mutex, nil)
        var attributes = pthread_condattr_t()
        pthread_condattr_init(&attributes)
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
        pthread_cond_init(condition, &attributes)
        pthread_condattr_destroy(&attributes)
    }

    deinit {
        pthread_cond_destroy(condition)
        pthread_mutex_destroy(mutex)
        condition.deallocate()
        mutex.deallocate()
    }

    package func lock() { pthread_mutex_lock(mutex) }
    package func unlock() { pthread_mutex_unlock(mutex) }
    package func broadcast() { pthread_cond_broadcast(condition) }
    /// Waits for a signal. The caller holds the lock before and after the call.
    package func wait() { pthread_cond_wait(condition, mutex) }

    /// Waits for a signal, at most until the given time. The caller holds the lock before and after the call.
    ///
    /// - Returns: `false` if no signal arrived before the given time.
    package func wait(until end: SuspendingClock.Instant) -> Bool {
        let left = max(SuspendingClock.now.duration(to: end), .zero).components
        var moment = timespec()
        clock_gettime(CLOCK_MONOTONIC, &moment)
        let nanoseconds = moment.tv_nsec + Int(left.attoseconds / 1_000_000_000)
        moment.tv_sec += Int(left.seconds) + nanoseconds / 1_000_000_000
        moment.tv_nsec = nanoseconds % 1_000_000_000
        return pthread_cond_timedwait(condition, mutex, &moment) == 0
    }
}
