import ProcessSupport
import BackgroundLedger
import Dispatch
import Foundation
import Synchronization

/// Calls listeners on a separate queue when the database changes. All listeners share one inotify descriptor.
package final class DatabaseWatch: Sendable {
    private struct Listeners {
        var next = 0
        var actions: [Int: @Sendable () -> Void] = [:]
    }

    /// The number of microseconds between two calls of the listeners, if the system cannot report changes of the database.
    private static let pollInterval: UInt32 = 500_000

    private let listeners = Mutex(Listeners())
    private let queue = DispatchQueue(label: "database-watch")
    /// The dispatch source that receives the changes, or `nil` if the system cannot report changes of the database. The property
    /// is set once in `init`, and a dispatch source can be used from any thread.
    nonisolated(unsafe) private let source: (any DispatchSourceProtocol)?

    /// Begins to watch a database. If the system has no more inotify instances or watches, all listeners are called every half
    /// second, because an unnecessary call does no harm.
    ///
    /// - Parameter database: the path of the database, which this process has opened.
    package init(database: String) {
        guard let bell = try? ChangeListenerBox(ChangeListener(database: database)) else {
            source = nil
            pollAtIntervals()
            return
        }
        let source = DispatchSource.makeReadSource(fileDescriptor: bell.descriptor, queue: queue)
        self.source = source
        // The handler is `@Sendable`, because otherwise it would be isolated to the caller's actor, and the program would crash
        // on this queue.
        source.setEventHandler { @Sendable [weak self] in
            bell.drain()
            self?.ring()
        }
        source.activate()
    }

    deinit { source?.cancel() }

    /// Calls the listeners every half second, from a separate thread. The thread is necessary if the process has no free
    /// descriptor for inotify. A timer of libdispatch also needs a descriptor, so it would never fire.
    private func pollAtIntervals() {
        Thread.detachNewThread { [weak self] in
            while true {
                usleep(Self.pollInterval)
                guard let watch = self else { return }
                watch.queue.async { watch.ring() }
            }
        }
    }

    private func ring() {
        let actions = listeners.withLock { Array($0.actions.values) }
        for action in actions { action() }
    }

    /// Calls the action for every commit by any process, including this process, until the token is cancelled or deallocated.
    package func add(_ action: @escaping @Sendable () -> Void) -> Token {
        let number = listeners.withLock { listeners in
            listeners.next += 1
            listeners.actions[listeners.next] = action
            return listeners.next
        }
        return Token { [weak self] in self?.listeners.withLock { _ = $0.actions.removeValue(forKey: number) } }
    }

    /// A token that stops the calls when it is cancelled or deallocated.
    package final class Token: Sendable {
        private let end: @Sendable () -> Void

        init(_ end: @escaping @Sendable () -> Void) { self.end = end }

        package func cancel() { end() }

        deinit { end() }
    }
}

/// A class that owns the non-copyable `ChangeListener`, so that a closure can capture it.
private final class ChangeListenerBox: Sendable {
    private let bell: ChangeListener

    init(_ bell: consuming ChangeListener) { self.bell = bell }

    var descriptor: Int32 { bell.descriptor }

    func drain() { bell.drain() }
}
