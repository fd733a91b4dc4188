import BackgroundScheduling
import CLinux
import Foundation
import ProcessSupport
import Synchronization

/// The kernel's alarm that wakes a sleeping machine. The alarm is a timer on `CLOCK_BOOTTIME_ALARM` in the agent's loop.
///
/// `CLOCK_REALTIME_ALARM` is not necessary, because the agent sets the alarm again after a change of the wall clock.
final class AlarmTimer: WakeClock {
    /// The number of the clock `CLOCK_BOOTTIME_ALARM`. Swift does not import this number from Glibc's headers.
    private static let clock: Int32 = 9

    /// The timer of the alarm. `nil` if no alarm is set. The timer is closed to remove an alarm, because a disarmed alarm looks
    /// like an armed alarm in the kernel's data.
    private let descriptor = Mutex<Int32?>(nil)
    private let watch: @Sendable (Int32) throws(StoreError) -> Void
    private let unwatch: @Sendable (Int32) -> Void

    /// - Parameters:
    ///   - watch: adds a descriptor to the loop.
    ///   - unwatch: removes a descriptor from the loop.
    init(watch: @escaping @Sendable (Int32) throws(StoreError) -> Void, unwatch: @escaping @Sendable (Int32) -> Void) {
        (self.watch, self.unwatch) = (watch, unwatch)
    }

    func arm(at instant: Date?) throws(WakeRefusal) {
        let known = descriptor.withLock { $0 }
        guard let instant else {
            if let known { end(known) }
            return
        }
        let timer: Int32
        if let known { timer = known } else { timer = try make() }
        var specification = itimerspec()
        // The seconds until the alarm are computed with the wall clock. The timer uses the clock that also counts time asleep,
        // because this clock is never set.
        let seconds = Self.boottime + max(instant.timeIntervalSince(Date()), 0) + 0.000_001
        specification.it_value.tv_sec = Int(seconds.rounded(.down))
        specification.it_value.tv_nsec = Int((seconds - seconds.rounded(.down)) * 1e9)
        guard timerfd_settime(timer, Int32(TFD_TIMER_ABSTIME), &specification, nil) == 0 else { throw Self.refusal(errno) }
    }

    private func make() throws(WakeRefusal) -> Int32 {
        let made = timerfd_create(Self.clock, Int32(TFD_NONBLOCK) | Int32(TFD_CLOEXEC))
        guard made >= 0 else { throw Self.refusal(errno) }
        do throws(StoreError) { try watch(made) } catch {
            close(made)
            throw WakeRefusal("the agent cannot wait for an alarm: \(error)")
        }
        descriptor.withLock { $0 = made }
        return made
    }

    private func end(_ timer: Int32) {
        unwatch(timer)
        close(timer)
        descriptor.withLock { $0 = nil }
    }

    private static func refusal(_ code: Int32) -> WakeRefusal {
        WakeRefusal(
            code == EPERM
                ? "the agent lacks the capability CAP_WAKE_ALARM" : "the kernel sets no alarm: \(String(cString: strerror(code)))"
        )
    }

    private static var boottime: Double {
        var time = timespec()
        clock_gettime(CLOCK_BOOTTIME, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }
}
