import BackgroundRuntime
import Foundation
import ProcessSupport
import Synchronization

// Commands that a user runs while the app's background work runs in virtual time.
extension TestDriver {
    /// Runs a command of the app as a process of the user, and lets virtual time pass until the command has ended.
    ///
    /// - Parameters:
    ///   - environment: The environment variables of the command.
    ///   - limit: The maximum virtual time of the command.
    ///   - body: The command.
    /// - Throws: ``CommandStillRuns`` after `limit`; an error if events cause each other without end, so that virtual time cannot pass.
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

    /// The error for a command that did not end within the limit of virtual time.
    package struct CommandStillRuns: Error, CustomStringConvertible {
        let limit: Duration
        let transcript: String

        package var description: String { "the command still runs after \(limit)\n\(transcript)" }
    }

    /// Sets whether new work starts an agent. The default is `true`.
    package func setStartsAgents(_ starts: Bool) { machine.startsAgents = starts }
}

extension TestDriver {
    /// The clock to which the dates of the app under test belong.
    ///
    /// The choice applies when the app sets or reads `earliestBeginDate` of a request or a transfer, or `expirationDate` of a
    /// notification. Wall-clock rules (`recurrence`, calendar triggers) always use the virtual clock, and time intervals need no
    /// clock.
    public enum AppDates: Sendable {
        /// The driver's ``TestDriver/clock``. The app and the test read the time from this clock.
        case virtualClock
        /// The real clock. The app calls `Date()`, as in `Date(timeIntervalSinceNow: 6 * 3600)`.
        ///
        /// The app may submit a date that is six hours after the real time. The driver then uses the date that is six hours after
        /// the virtual time. Real time passes between the app's call of `Date()` and the submission, so a test needs a tolerance
        /// for comparisons. Dates of ``TestDriver/clock`` cannot be used in such a test. Reports of the driver contain times of
        /// the virtual clock.
        case realClock
    }
}
