import BackgroundAgent
import Foundation
import Synchronization

// What belongs to one agent of a simulated host, and ends with it.

/// Hashing and syncing follow a second behind what is written, as their thread does.
final class DiskFollower: Sendable {
    private let disk: DiskWorker
    private let clock: VirtualClock
    private let life: AgentLife
    private let isWaiting = Mutex(false)

    init(_ disk: DiskWorker, clock: VirtualClock, life: AgentLife) {
        (self.disk, self.clock, self.life) = (disk, clock, life)
    }

    /// Something was written.
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

/// Commits of an agent that failed, one after the other, and when it tries again: `Setback` in virtual time.
struct AgentSetback {
    private var failures = 0
    /// In waking seconds.
    private(set) var until = 0.0
    /// What an agent does first has not worked yet.
    var mustReconcile = false

    /// - Returns: seconds until the next try.
    mutating func count(now: Double) -> Double {
        failures += 1
        let pause = Setback.pause(after: failures)
        until = now + pause
        return pause
    }

    mutating func isOver() { (failures, until) = (0, 0) }
}

/// Whether some agent is there.
final class AgentPresence: Sendable {
    let isThere = Mutex(false)
}

/// Whether one agent still lives: what is meant for a dead one reaches nobody.
final class AgentLife: Sendable {
    private let alive = Mutex(true)
    var isAlive: Bool { alive.withLock { $0 } }
    func end() { alive.withLock { $0 = false } }
}

/// What other threads have for the agent, and the wake-up of whoever runs the host.
final class AgentInbox: Sendable {
    private let events = Mutex<[AgentEvent]>([])
    private let waker = Mutex<@Sendable () -> Void>({})

    func add(_ event: AgentEvent) {
        events.withLock { $0.append(event) }
        wake()
    }

    func take() -> [AgentEvent] {
        events.withLock { events in
            defer { events = [] }
            return events
        }
    }

    func clear() { events.withLock { $0 = [] } }

    func wake() { waker.withLock { $0 }() }

    func onWake(_ action: @escaping @Sendable () -> Void) { waker.withLock { $0 = action } }
}
