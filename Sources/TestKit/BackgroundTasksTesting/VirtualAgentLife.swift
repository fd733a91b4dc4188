import BackgroundAgent
import Foundation
import Synchronization

// These types belong to one agent of a simulated host, and end with this agent.

/// Hashes and syncs written data one second after the write, like the disk worker of a real agent.
final class DiskFollower: Sendable {
    private let disk: DiskWorker
    private let clock: VirtualClock
    private let life: AgentLife
    private let isWaiting = Mutex(false)

    init(_ disk: DiskWorker, clock: VirtualClock, life: AgentLife) {
        (self.disk, self.clock, self.life) = (disk, clock, life)
    }

    /// Records that something was written.
    func touch() {
        let isFirst = isWaiting.withLock { waiting in
            defer { waiting = true }
            return !waiting
        }
        guard isFirst else { return }
        clock.schedule(after: 1) { [self] in
            isWaiting.withLock { $0 = false }
            if life.isAlive { disk.catchUp() }
        }
    }
}

/// The number of consecutive failed commits of an agent, and the time of its next try. `AgentSetback` is the type `Setback` in
/// virtual time.
struct AgentSetback {
    private var failures = 0
    /// The time of the next try, in seconds of the clock that stops during sleep.
    private(set) var until = 0.0
    /// `true` if the agent has not yet completed its first step.
    var mustReconcile = false

    /// - Returns: The seconds until the next try.
    mutating func count(now: Double) -> Double {
        failures += 1
        let pause = Setback.pause(after: failures)
        until = now + pause
        return pause
    }

    mutating func isOver() { (failures, until) = (0, 0) }
}

/// Tracks whether an agent is running. Other threads can read `isThere`.
final class AgentPresence: Sendable {
    let isThere = Mutex(false)
}

/// The state of one agent. Events for a dead agent are dropped.
final class AgentLife: Sendable {
    private let alive = Mutex(true)
    var isAlive: Bool { alive.withLock { $0 } }
    func end() { alive.withLock { $0 = false } }
}

/// The queue of events from other threads for the agent, with an action that wakes the host.
final class AgentInbox: Sendable {
    private let events = Mutex<[AgentEvent]>([])
    /// A lock that protects a function directly would wrap the function again at each access, without a limit.
    private struct Waker {
        var wake: @Sendable () -> Void = {}
    }

    private let waker = Mutex(Waker())

    func add(_ event: AgentEvent) {
        events.withLock { $0.append(event) }
        wake()
    }

    func drain() -> [AgentEvent] {
        events.withLock { events in
            defer { events = [] }
            return events
        }
    }

    func clear() { events.withLock { $0 = [] } }

    func wake() { waker.withLock { $0.wake }() }

    func onWake(_ action: @escaping @Sendable () -> Void) { waker.withLock { $0.wake = action } }
}
