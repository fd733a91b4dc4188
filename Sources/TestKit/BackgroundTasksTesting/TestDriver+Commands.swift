import BackgroundRuntime
import Foundation
import ProcessSupport
import Synchronization

// Commands that a user types while the app's background work goes through virtual time.
extension TestDriver {
    /// Runs a command of the app where a user would start a process, and lets virtual time pass until the command has ended.
    ///
    /// - Parameters:
    ///   - environment: The environment variables of the command.
    ///   - limit: The longest virtual time that the command may take.
    ///   - body: The command.
    /// - Throws: ``CommandStillRuns`` after `limit`; when one moment leads to the next without end.
    package func run<Value: Sendable>(
        command body: @escaping @Sendable () async -> Value, environment: [String: String],
        within limit: Duration = .seconds(3_600)
    ) async throws -> Value {
        let processes = machine.processes
        let command = app.beginCommand(processes.beginCommand())
        let (app, changes) = (app, changes)
        let work = HostedCommand.$current.withValue(command) {
            ThisProcess.$givenEnvironment.withValue(environment) {
                Task(executorPreference: executor) {
                    let value = await body()
                    processes.endCommand(command.identity)
                    app.end(command)
                    changes.add()
                    return value
                }
            }
        }
        let end = clock.awake + limit / .seconds(1)
        try await settle()
        while app.isRunning(command) {
            guard clock.awake < end else {
                work.cancel()
                processes.endCommand(command.identity)
                app.end(command)
                throw CommandStillRuns(limit: limit, transcript: transcript.suffix(20).joined(separator: "\n"))
            }
            try machine.step(atMost: end - clock.awake)
            try await settle()
        }
        return await work.value
    }

    /// A command did not end in the virtual time that it was given.
    package struct CommandStillRuns: Error, CustomStringConvertible {
        let limit: Duration
        let transcript: String

        package var description: String { "the command still runs after \(limit)\n\(transcript)" }
    }

    /// Sets whether new work starts an agent. The default is `true`.
    package func setStartsAgents(_ starts: Bool) { machine.startsAgents = starts }
}

extension TestDriver {
    /// The clock that the dates of the app under test belong to.
    ///
    /// Concerns `earliestBeginDate` of requests and of transfers, and `expirationDate` of notifications, in both directions. Rules of the
    /// person's clock (`recurrence`, calendar triggers) are always read on the virtual clock, and time intervals need no clock.
    public enum AppDates: Sendable {
        /// The driver's ``TestDriver/clock``: the app, and the test, take the time from there.
        case virtualClock
        /// The real clock: the app calls `Date()`, as in `Date(timeIntervalSinceNow: 6 * 3600)`.
        ///
        /// A date that is six hours ahead of the real clock when the app hands it over means six hours ahead of the virtual clock. The real
        /// time between the two calls is lost, so a test compares with a tolerance. Dates of ``TestDriver/clock`` do not fit into
        /// such a test; reports of the driver show the virtual clock.
        case realClock
    }
}
