import CLinux
import Foundation
import ProcessSupport
import Synchronization

/// One thread's wait for everything: descriptors, a point in time, and calls from other threads. Nothing else wakes it.
///
/// Not libdispatch: any use of its global pool wakes the process once a second for ever.
final class EventLoop {
    private let epoll: Int32
    private let timer: Int32
    private let mailbox: Mailbox
    private var handlers: [Int32: () -> Void] = [:]
    /// Descriptors that wake nobody for now.
    private var held: [Int32: Hold] = [:]
    /// One that was held had something to say.
    private var isTurnDue = false
    private var isStopped = false
    /// Between two waits.
    private var clockWasSet = false
    /// The clock was set by hand (or by the network) while the timer waited.
    var onClockChange: () -> Void = {}

    /// Calls from other threads, in order.
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

        func take() -> [@Sendable () -> Void] {
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
            // Real time, so that it fires at resume for what came due in sleep, and tells when the clock is set.
            timer = try Self.made("timer", timerfd_create(CLOCK_REALTIME, Int32(TFD_NONBLOCK) | Int32(TFD_CLOEXEC)))
        } catch {
            close(made)
            throw error
        }
        epoll = made
        // All is set: an error from here on runs `deinit`.
        try watch(mailbox.descriptor) { for call in mailbox.take() { call() } }
        try watch(timer) { [unowned self] in drainTimer() }
    }

    /// - Throws: The limit of open files does not leave so many descriptors.
    static func requireRoom(for count: Int) throws(StoreError) {
        var opened: [Int32] = []
        defer { for descriptor in opened { close(descriptor) } }
        while opened.count < count { opened.append(try made("descriptors", eventfd(0, Int32(EFD_CLOEXEC)))) }
    }

    /// - Parameter descriptor: The result of a call of the kernel.
    static func made(_ what: String, _ descriptor: Int32) throws(StoreError) -> Int32 {
        guard descriptor >= 0 else { throw .notWatched(what, errno, "") }
        return descriptor
    }

    deinit {
        close(epoll)
        close(timer)
    }

    /// Posts a call that the loop makes on its own thread.
    var poster: @Sendable (@escaping @Sendable () -> Void) -> Void {
        let mailbox = mailbox
        return { mailbox.post($0) }
    }

    /// - Throws: The kernel has no room for another watch. The descriptor is then not watched.
    func watch(_ descriptor: Int32, _ handler: @escaping () -> Void) throws(StoreError) {
        var event = epoll_event()
        event.events = EPOLLIN.rawValue
        event.data.fd = descriptor
        guard epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event) == 0 else { throw .notWatched("epoll", errno, "") }
        handlers[descriptor] = handler
    }

    /// Times in seconds awake.
    private struct Hold {
        let end: Double
        var nextLook: Double
        var hasSpoken = false
        let drain: () -> Bool

        /// Silence after which nothing more is awaited.
        static let silence = 0.025
    }

    /// What comes of it is handled when nothing more has come for 25 ms, and after so many seconds at the latest: by a turn, and not by its handler.
    ///
    /// - Parameter drain: takes what has come, and says whether anything has.
    func hold(_ descriptor: Int32, atMost seconds: Double, drain: @escaping () -> Bool) {
        held[descriptor] = Hold(end: Self.awake + seconds, nextLook: Self.awake + Hold.silence, drain: drain)
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

    /// Milliseconds until the first that is held may wake; -1: none is held.
    private func release() -> Int32 {
        let now = Self.awake
        for (descriptor, hold) in held where hold.nextLook <= now {
            let speaks = hold.drain()
            if speaks, now < hold.end {
                held[descriptor]?.hasSpoken = true
                held[descriptor]?.nextLook = now + Hold.silence
            } else {
                if speaks || hold.hasSpoken { isTurnDue = true }
                held[descriptor] = nil
                listen(to: descriptor, EPOLLIN.rawValue)
            }
        }
        if isTurnDue { return 0 }
        return held.values.map(\.nextLook).min().map { Int32((($0 - now) * 1_000).rounded(.up)) } ?? -1
    }

    func unwatch(_ descriptor: Int32) {
        handlers[descriptor] = nil
        held[descriptor] = nil
        epoll_ctl(epoll, EPOLL_CTL_DEL, descriptor, nil)
    }

    /// Wakes at `date`; `nil`: time alone wakes nobody. Cancelled by a set clock even without a date.
    func setTimer(_ date: Date?) {
        var specification = itimerspec()
        // Far enough to never fire, near enough to be a valid time: the watch for a set clock stays armed.
        let never = 32_503_680_000.0
        let seconds = min(max(date?.timeIntervalSince1970 ?? never, 1), never)
        specification.it_value.tv_sec = Int(seconds.rounded(.down))
        specification.it_value.tv_nsec = Int((seconds - seconds.rounded(.down)) * 1e9)
        let flags = Int32(TFD_TIMER_ABSTIME) | Int32(TFD_TIMER_CANCEL_ON_SET)
        // A clock that was set while nobody waited is told here, and the timer is set all the same.
        if timerfd_settime(timer, flags, &specification, nil) < 0, errno == ECANCELED { clockWasSet = true }
    }

    private func drainTimer() {
        var expirations: UInt64 = 0
        if read(timer, &expirations, 8) < 0, errno == ECANCELED { onClockChange() }
    }

    func stop() { isStopped = true }

    /// A call of another thread waits, or the timer has something to say, as of a clock that was set.
    var hasNews: Bool {
        var looked = [mailbox.descriptor, timer].map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
        return clockWasSet || poll(&looked, nfds_t(looked.count), 0) > 0
    }

    /// Waits and handles, calling `turn` after each batch, until ``stop()``. Can be run again.
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
            // One that is held was looked at, and goes on.
            if count == 0, !isTurnDue { continue }
            isTurnDue = false
            for index in 0..<max(0, Int(count)) { handlers[events[index].data.fd]?() }
            turn()
        }
    }
}
