import CLibcurl
import CLinux
import Glibc
import Synchronization

/// Wakes a thread that sleeps in `curl_multi_poll`.
///
/// libcurl's wake-up function uses a pair of sockets that is created together with the multi handle. If no descriptor is free at
/// that time, the thread never wakes. The descriptor of this type is created as soon as a descriptor is free. Until the
/// descriptor exists, the thread checks for work once per second.
final class Waker: Sendable {
    /// The number of milliseconds between two checks if the descriptor could not be created.
    private static let pause: Int32 = 1_000

    /// Creates the descriptor. Tests pass a function that fails to create a descriptor.
    private let make: @Sendable () -> Int32
    /// The descriptor, or -1 if it could not be created yet.
    private let descriptor: Mutex<Int32>

    init(make: @escaping @Sendable () -> Int32 = { eventDescriptor() }) {
        self.make = make
        descriptor = Mutex(make())
    }

    deinit { descriptor.withLock { if $0 >= 0 { close($0) } } }

    /// Creates an event descriptor.
    ///
    /// - Returns: The descriptor, or -1 if the process or the system has no free descriptor.
    static func eventDescriptor() -> Int32 { eventfd(0, Int32(EFD_NONBLOCK) | Int32(EFD_CLOEXEC)) }

    /// Ends the current sleep. If the thread is not asleep, its next sleep ends immediately.
    func wake() {
        descriptor.withLock { descriptor in
            guard descriptor >= 0 else { return }
            var one: UInt64 = 1
            while write(descriptor, &one, 8) < 0, errno == EINTR {}
        }
    }

    /// Sleeps until libcurl has work, the time has passed, the other descriptor is ready, or ``wake()`` is called.
    func wait(_ multi: UnsafeMutableRawPointer, milliseconds: Int32, also other: curl_waitfd? = nil) -> CURLMcode {
        let (own, isNew) = descriptor.withLock { descriptor in
            if descriptor >= 0 { return (descriptor, false) }
            descriptor = make()
            return (descriptor, descriptor >= 0)
        }
        // Earlier calls of ``wake()`` had no effect because the descriptor did not exist yet, so this call returns immediately.
        if isNew { return CURLM_OK }
        var entries = other.map { [$0] } ?? []
        if own >= 0 { entries.append(curl_waitfd(fd: own, events: Int16(CURL_WAIT_POLLIN), revents: 0)) }
        let longest = own >= 0 ? milliseconds : min(milliseconds, Self.pause)
        let waited = curl_multi_poll(multi, &entries, UInt32(entries.count), longest, nil)
        if own >= 0 {
            var count: UInt64 = 0
            _ = read(own, &count, 8)
        }
        return waited
    }
}
