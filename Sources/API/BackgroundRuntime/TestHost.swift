import ProcessSupport
import BackgroundLedger
import Foundation
import Synchronization

/// The simulated system that runs an app in virtual time during a test.
package struct TestHost: Sendable {
    package var manifest: AppManifest
    /// The test host's ledger, which is in memory, as the app's simulated processes access it.
    package var ledger: Ledger
    package var now: @Sendable () -> Date
    /// Returns the number of seconds since an arbitrary fixed moment. A change of the clock has no effect on this number.
    package var elapsed: @Sendable () -> Double
    /// Returns the time that the app reads with `Date()`, if this time differs from ``now``.
    package var appNow: (@Sendable () -> Date)?
    package var zone: @Sendable () -> TimeZone
    /// A closure that is called after each commit that an agent has to process.
    package var agentIsNeeded: @Sendable () -> Void
    package var hasAgent: @Sendable () -> Bool
    package var isAlive: @Sendable (ProcessIdentity) -> Bool
    /// A closure that is called when code begins to wait for a change of the ledger. The closure is also called after each read
    /// during the wait, and when the wait ends.
    package var waitsChanged: @Sendable () -> Void
    /// A function that calls an action after the given number of seconds of virtual time. The function returns a closure that
    /// cancels the alarm.
    package var alarm: @Sendable (Double, _ isIdle: Bool, @escaping @Sendable () -> Void) -> @Sendable () -> Void
    /// The executor that runs the Swift tasks of the app.
    package var executor: any TaskExecutor

    package init(
        manifest: AppManifest, ledger: Ledger, now: @escaping @Sendable () -> Date, elapsed: @escaping @Sendable () -> Double,
        appNow: (@Sendable () -> Date)? = nil,
        zone: @escaping @Sendable () -> TimeZone, agentIsNeeded: @escaping @Sendable () -> Void,
        hasAgent: @escaping @Sendable () -> Bool,
        isAlive: @escaping @Sendable (ProcessIdentity) -> Bool, waitsChanged: @escaping @Sendable () -> Void,
        alarm: @escaping @Sendable (Double, _ isIdle: Bool, @escaping @Sendable () -> Void) -> @Sendable () -> Void,
        executor: any TaskExecutor
    ) {
        (self.manifest, self.ledger, self.now, self.elapsed) = (manifest, ledger, now, elapsed)
        (self.appNow, self.zone) = (appNow, zone)
        (self.agentIsNeeded, self.hasAgent, self.isAlive) = (agentIsNeeded, hasAgent, isAlive)
        (self.waitsChanged, self.alarm, self.executor) = (waitsChanged, alarm, executor)
    }
}

extension Date {
    /// Returns this date, moved by the difference between `one` and `other`. `distantPast` and `distantFuture` do not change.
    func moved(from one: Date, to other: Date) -> Date {
        guard self > .distantPast, self < .distantFuture else { return self }
        return other + timeIntervalSince(one)
    }
}

/// The waits for changes of the ledger on a test host, and the last commit that each wait has processed.
final class HostedWaits: Sendable {
    private struct Wait {
        let launch: Int64?
        /// The number of commits to the ledger that this wait has processed. -1 if the wait is running.
        var seen = -1
    }

    private struct State {
        var waits: [Int: Wait] = [:]
        var next = 0
    }

    private let state = Mutex(State())

    func begin(launch: Int64?) -> Int {
        state.withLock { state in
            state.next += 1
            state.waits[state.next] = Wait(launch: launch)
            return state.next
        }
    }

    /// Marks the work of a wait as running again, so that virtual time does not pass.
    func wake(_ number: Int) { state.withLock { $0.waits[number]?.seen = -1 } }

    func looked(_ number: Int, at commits: Int) { state.withLock { $0.waits[number]?.seen = commits } }

    func end(_ number: Int) { state.withLock { _ = $0.waits.removeValue(forKey: number) } }

    /// Returns `true` if the launch waits for a change of the ledger, and if every wait of the launch has processed all commits.
    func isWaiting(launch: Int64, commits: Int) -> Bool {
        state.withLock { state in
            let own = state.waits.values.filter { $0.launch == launch }
            return !own.isEmpty && own.allSatisfy { $0.seen >= commits }
        }
    }
}

/// An object that contains state of a process. On a test host, all simulated processes run in one real process, so the object
/// must remove the state of a simulated process that ends.
package protocol ProcessBound: AnyObject, Sendable {
    func processEnded(launch: Int64)
}
