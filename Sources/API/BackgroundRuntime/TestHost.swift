import ProcessSupport
import BackgroundLedger
import Foundation
import Synchronization

/// What takes the system's place while a test drives an app in virtual time.
package struct TestHost: Sendable {
    package var manifest: AppManifest
    /// In memory, as the app sees it.
    package var ledger: Ledger
    package var now: @Sendable () -> Date
    /// Seconds that have passed since an arbitrary moment. A clock that is set does not change them.
    package var elapsed: @Sendable () -> Double
    /// What `Date()` shows to the app, if that is another clock than ``now``.
    package var appNow: (@Sendable () -> Date)?
    package var zone: @Sendable () -> TimeZone
    /// Something was committed that an agent should hear of.
    package var agentIsNeeded: @Sendable () -> Void
    package var hasAgent: @Sendable () -> Bool
    package var isAlive: @Sendable (ProcessIdentity) -> Bool
    /// An await on the ledger began, looked or ended.
    package var waitsChanged: @Sendable () -> Void
    /// Calls an action after so many seconds of virtual time. Returns a closure that cancels it.
    package var alarm: @Sendable (Double, @escaping @Sendable () -> Void) -> @Sendable () -> Void
    /// Runs the tasks of the app.
    package var executor: any TaskExecutor

    package init(
        manifest: AppManifest, ledger: Ledger, now: @escaping @Sendable () -> Date, elapsed: @escaping @Sendable () -> Double,
        appNow: (@Sendable () -> Date)? = nil,
        zone: @escaping @Sendable () -> TimeZone, agentIsNeeded: @escaping @Sendable () -> Void,
        hasAgent: @escaping @Sendable () -> Bool,
        isAlive: @escaping @Sendable (ProcessIdentity) -> Bool, waitsChanged: @escaping @Sendable () -> Void,
        alarm: @escaping @Sendable (Double, @escaping @Sendable () -> Void) -> @Sendable () -> Void, executor: any TaskExecutor
    ) {
        (self.manifest, self.ledger, self.now, self.elapsed) = (manifest, ledger, now, elapsed)
        (self.appNow, self.zone) = (appNow, zone)
        (self.agentIsNeeded, self.hasAgent, self.isAlive) = (agentIsNeeded, hasAgent, isAlive)
        (self.waitsChanged, self.alarm, self.executor) = (waitsChanged, alarm, executor)
    }
}

extension AppRuntime {
    /// The name of the command that a user types.
    package static var programName: String {
        // Asked before the manifest of a process is set.
        (isTestHosted ? shared.testHost?.manifest.appIdentifier : nil) ?? AppManifest.executableURL.lastPathComponent
    }

    /// Runs the tasks of the app, on a test host that has to know when they wait. `nil` if the process is not hosted.
    package var executor: (any TaskExecutor)? { testHost?.executor }

    /// Returns the moment on the clock of this process for a date that the app computed. They differ only on a test host.
    package func date(fromApp date: Date) -> Date {
        guard let testHost, let appNow = testHost.appNow else { return date }
        return date.moved(from: appNow(), to: testHost.now())
    }

    /// Returns the date that the app would have computed for a moment on the clock of this process.
    package func date(forApp date: Date) -> Date {
        guard let testHost, let appNow = testHost.appNow else { return date }
        return date.moved(from: testHost.now(), to: appNow())
    }

    /// Calls an action once, after so many seconds of the app's time. On a test host these are virtual.
    ///
    /// - Returns: A closure that cancels the alarm.
    package func alarm(after seconds: Double, _ action: @escaping @Sendable () -> Void) -> @Sendable () -> Void {
        if let testHost { return testHost.alarm(seconds, action) }
        let sleeper = Task {
            try await Task.sleep(for: .seconds(seconds))
            action()
        }
        return { sleeper.cancel() }
    }

    /// Returns after so many seconds of the app's time, or when the task is cancelled.
    package func pause(for seconds: Double) async {
        let (end, alarm) = AsyncStream.makeStream(of: Void.self)
        let cancelAlarm = self.alarm(after: seconds) { alarm.finish() }
        for await _ in end {}
        cancelAlarm()
    }

    /// The time that has passed since an arbitrary moment, on the clock of ``alarm(after:_:)``.
    package var elapsed: Duration { testHost.map { .seconds($0.elapsed()) } ?? Self.start.duration(to: .now) }
    private static let start = ContinuousClock.now
}

extension Date {
    /// Returns the date that lies as far from one moment as this date lies from another. Dates that stand for "never" stay.
    fileprivate func moved(from one: Date, to other: Date) -> Date {
        guard self > .distantPast, self < .distantFuture else { return self }
        return other + timeIntervalSince(one)
    }
}

/// Who awaits the ledger on a test host, and what of it each has seen.
final class HostedWaits: Sendable {
    private struct Wait {
        let launch: Int64?
        /// Commits that it has looked at, and goes on waiting.
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

    /// Returns whether the launch awaits the ledger and each of these waits has seen every commit.
    func isWaiting(launch: Int64, commits: Int) -> Bool {
        state.withLock { state in
            let own = state.waits.values.filter { $0.launch == launch }
            return !own.isEmpty && own.allSatisfy { $0.seen >= commits }
        }
    }
}

/// Something that goes with a process: on a test host, where processes share one memory, with each that ends.
package protocol ProcessBound: AnyObject, Sendable {
    func processEnded(launch: Int64)
}
