import ProcessSupport
import BackgroundLedger
import Dispatch
import Foundation
import Synchronization

/// Turns the bell of a database into calls, on a queue of its own. One inotify descriptor however many listen.
package final class DatabaseWatch: Sendable {
    private struct Listeners {
        var next = 0
        var actions: [Int: @Sendable () -> Void] = [:]
    }

    /// Microseconds between two calls if the database cannot be watched.
    private static let deafPause: UInt32 = 500_000

    private let listeners = Mutex(Listeners())
    private let queue = DispatchQueue(label: "database-watch")
    /// Set once in `init`; dispatch sources may be used from any thread. `nil` if the database cannot be watched.
    nonisolated(unsafe) private let source: (any DispatchSourceProtocol)?

    /// Where other programs have used up the system's inotify instances or watches, everybody is called every half second: to be called
    /// for nothing is no harm.
    ///
    /// - Parameter database: its path; this process has opened it.
    package init(database: String) {
        guard let bell = try? BellBox(Bell(database: database)) else {
            source = nil
            lookAtIntervals()
            return
        }
        let source = DispatchSource.makeReadSource(fileDescriptor: bell.descriptor, queue: queue)
        self.source = source
        // @Sendable: a handler made in an isolated context would trap when called on this queue.
        source.setEventHandler { @Sendable [weak self] in
            bell.drain()
            self?.ring()
        }
        source.activate()
    }

    deinit { source?.cancel() }

    /// Calls the listeners every half second, from a thread. A process without a free descriptor cannot watch the database. A timer of
    /// libdispatch needs a descriptor as well, and never fires without one.
    private func lookAtIntervals() {
        Thread.detachNewThread { [weak self] in
            while true {
                usleep(Self.deafPause)
                guard let watch = self else { return }
                watch.queue.async { watch.ring() }
            }
        }
    }

    private func ring() {
        let actions = listeners.withLock { Array($0.actions.values) }
        for action in actions { action() }
    }

    /// Calls for every commit by any process, this one included, until the token is cancelled or released.
    package func add(_ action: @escaping @Sendable () -> Void) -> Token {
        let number = listeners.withLock { listeners in
            listeners.next += 1
            listeners.actions[listeners.next] = action
            return listeners.next
        }
        return Token { [weak self] in self?.listeners.withLock { _ = $0.actions.removeValue(forKey: number) } }
    }

    /// Ends listening, at the latest when it is released.
    package final class Token: Sendable {
        private let end: @Sendable () -> Void

        init(_ end: @escaping @Sendable () -> Void) { self.end = end }

        package func cancel() { end() }

        deinit { end() }
    }
}

/// Lets a closure own the non-copyable bell.
private final class BellBox: Sendable {
    private let bell: Bell

    init(_ bell: consuming Bell) { self.bell = bell }

    var descriptor: Int32 { bell.descriptor }

    func drain() { bell.drain() }
}
