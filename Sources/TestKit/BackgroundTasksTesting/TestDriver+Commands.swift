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
