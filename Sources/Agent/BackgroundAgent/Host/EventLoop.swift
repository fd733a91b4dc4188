import CLinux
import Foundation
import ProcessSupport
import Synchronization

/// The loop in which a single thread waits for all events: readable descriptors, the timer, and calls from other threads. The
/// thread does not wake for other reasons.
///
/// libdispatch is not used, because after the first use of its global pool, a process wakes once per second until its end.
final class EventLoop {
    private let epoll: Int32
    private let timer: Int32
    private let mailbox: Mailbox
    private var handlers: [Int32: () -> Void] = [:]
    /// Descriptors whose handlers are delayed.
    private var held: [Int32: Hold] = [:]
    /// `true` if a delayed descriptor had data.
    private var isTurnDue = false
    private var isStopped = false
    /// `true` if the clock was set between two waits.
    private var clockWasSet = false
    /// A function that is called if the user or the network set the clock while the timer waited.
    var onClockChange: () -> Void = {}

    /// The calls from other threads, in their order.
    final class Mailbox: Sendable {
        private let calls = Mutex<[@Sendable () -> Void]>([])
        let descriptor: Int32

        init() throws(StoreError) {
            descriptor = try EventLoop.made("eventfd", eventfd(0, Int32(EFD_NONBLOCK) | Int32(EFD_CLOEXEC)))
        }

        deinit { close(descriptor) }

        func post(_ call: @escaping @Sendable () -> Void) {
            calls.withLock { $0.append(call) }
            var one: UInt64 = 1
            write(descriptor, &one, 8)
        }

        func drain() -> [@Sendable () -> Void] {
            var count: UInt64 = 0
            read(descriptor, &count, 8)
            return calls.withLock { calls in
                defer { calls = [] }
                return calls
            }
        }
    }

    init() throws(StoreError) {
        let mailbox = try Mailbox()
        self.mailbox = mailbox
        let made = try Self.made("epoll", epoll_create1(Int32(EPOLL_CLOEXEC)))
        do throws(StoreError) {
            // The timer uses real time, so after a sleep it fires for times during the sleep. The timer also reports that the
            // clock was set.
            timer = try Self.made("timer", timerfd_create(CLOCK_REALTIME, Int32(TFD_NONBLOCK) | Int32(TFD_CLOEXEC)))
        } catch {
            close(made)
            throw error
        }
        epoll = made
        // All properties are set here, so `deinit` runs if a later line throws an error.
        try watch(mailbox.descriptor) { for call in mailbox.drain() { call() } }
        try watch(timer) { [unowned self] in drainTimer() }
    }

    /// Checks that enough descriptors are free.
    ///
    /// - Throws: An error if the limit for open files permits fewer descriptors.
    static func requireRoom(for count: Int) throws(StoreError) {
        var opened: [Int32] = []
        defer { for descriptor in opened { close(descriptor) } }
        while opened.count < count { opened.append(try made("descriptors", eventfd(0, Int32(EFD_CLOEXEC)))) }
    }

    /// Checks the result of a system call that creates a descriptor.
    ///
    /// - Parameter descriptor: The result of the system call.
    static func made(_ what: String, _ descriptor: Int32) throws(StoreError) -> Int32 {
        guard descriptor >= 0 else { throw .notWatched(what, errno, "") }
        return descriptor
    }

    deinit {
        close(epoll)
        close(timer)
    }

    /// Posts a call from any thread. The loop makes the call on its own thread.
    var poster: @Sendable (@escaping @Sendable () -> Void) -> Void {
        let mailbox = mailbox
        return { mailbox.post($0) }
    }

    /// Calls a handler whenever a descriptor is readable.
    ///
    /// - Throws: An error if the kernel cannot add another watch. The descriptor is then not watched.
    func watch(
        _ descriptor: Int32, events: UInt32 = EPOLLIN.rawValue, _ handler: @escaping () -> Void
    ) throws(StoreError) {
        var event = epoll_event()
        event.events = events
        event.data.fd = descriptor
        guard epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event) == 0 else { throw .notWatched("epoll", errno, "") }
        handlers[descriptor] = handler
    }

    /// A delay of a descriptor's handler. All times are in seconds of the monotonic clock.
    private struct Hold {
        let end: Double
        var nextCheckTime: Double
        var hasSpoken = false
        let drain: () -> Bool

        /// The number of seconds without data after which the delay ends.
        static let silence = 0.025
    }

    /// Delays the handler of a descriptor. A turn of the loop follows after 25 ms without data, or after `seconds` at the latest.
    /// The descriptor's handler is not called for this data.
    ///
    /// - Parameter drain: reads the data, and returns `true` if data was available.
    func hold(_ descriptor: Int32, atMost seconds: Double, drain: @escaping () -> Bool) {
        held[descriptor] = Hold(end: Self.awake + seconds, nextCheckTime: Self.awake + Hold.silence, drain: drain)
        listen(to: descriptor, 0)
    }

    private func listen(to descriptor: Int32, _ what: UInt32) {
        var event = epoll_event()
        event.events = what
        event.data.fd = descriptor
        epoll_ctl(epoll, EPOLL_CTL_MOD, descriptor, &event)
    }

    private static var awake: Double {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }

    /// Ends the delays whose time has passed. Returns the number of milliseconds until the next check of a delay, or -1 if no
    /// descriptor is delayed.
    private func release() -> Int32 {
        let now = Self.awake
        for (descriptor, hold) in held where hold.nextCheckTime <= now {
            let speaks = hold.drain()
            if speaks, now < hold.end {
                held[descriptor]?.hasSpoken = true
                held[descriptor]?.nextCheckTime = now + Hold.silence
            } else {
                if speaks || hold.hasSpoken { isTurnDue = true }
                held[descriptor] = nil
                listen(to: descriptor, EPOLLIN.rawValue)
            }
        }
        if isTurnDue { return 0 }
        return held.values.map(\.nextCheckTime).min().map { Int32((($0 - now) * 1_000).rounded(.up)) } ?? -1
    }

    func unwatch(_ descriptor: Int32) {
        handlers[descriptor] = nil
        held[descriptor] = nil
        epoll_ctl(epoll, EPOLL_CTL_DEL, descriptor, nil)
    }

    /// Sets the date of the next wake-up. If the date is `nil`, no wake-up is set. If the clock is set, the timer reports this
    /// even if no date is set.
    func setTimer(_ date: Date?) {
        var specification = itimerspec()
        // The timer never fires for a date so far in the future, but still reports a change of the clock.
        let never = 32_503_680_000.0
        let seconds = min(max(date?.timeIntervalSince1970 ?? never, 1), never)
        specification.it_value.tv_sec = Int(seconds.rounded(.down))
        specification.it_value.tv_nsec = Int((seconds - seconds.rounded(.down)) * 1e9)
        let flags = Int32(TFD_TIMER_ABSTIME) | Int32(TFD_TIMER_CANCEL_ON_SET)
        // If the clock was set outside a wait, the change is recorded here. The call still sets the timer.
        if timerfd_settime(timer, flags, &specification, nil) < 0, errno == ECANCELED { clockWasSet = true }
    }

    private func drainTimer() {
        var expirations: UInt64 = 0
        if read(timer, &expirations, 8) < 0, errno == ECANCELED { onClockChange() }
    }

    func stop() { isStopped = true }

    /// `true` if a call from another thread waits, the timer has fired, or the clock was set.
    var hasNews: Bool {
        var looked = [mailbox.descriptor, timer].map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
        return clockWasSet || poll(&looked, nfds_t(looked.count), 0) > 0
    }

    /// Waits for events, handles them, and calls `turn` after each batch of events. The method returns after ``stop()`` and can
    /// be called again.
    func run(turn: () -> Void) {
        isStopped = false
        var events = [epoll_event](repeating: epoll_event(), count: 64)
        while !isStopped {
            if clockWasSet {
                clockWasSet = false
                onClockChange()
                turn()
                continue
            }
            let count = epoll_wait(epoll, &events, Int32(events.count), release())
            if count < 0, errno != EINTR { return }
            // Only a delayed descriptor was checked, and its delay continues.
            if count == 0, !isTurnDue { continue }
            isTurnDue = false
            for index in 0..<max(0, Int(count)) { handlers[events[index].data.fd]?() }
            turn()
        }
    }
}
