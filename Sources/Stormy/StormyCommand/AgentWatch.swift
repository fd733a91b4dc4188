import BackgroundCommands
import BackgroundRuntime

/// Prints the problem that prevents the agent from working, while a command follows transfers. For example, if the agent cannot
/// write to its ledger, no transfer changes.
enum AgentWatch {
    /// The time between two checks. Each check reads one small file.
    private static let pause = Duration.seconds(1)

    /// Runs `body`. Prints the agent's problem once, on standard error.
    static func during<Value: Sendable>(_ body: () async throws -> Value) async throws -> Value {
        let watch = Task {
            repeat {
                if let sentence = AgentReport.waiting {
                    ProgressBar.clearLine()
                    return Output.sentence(sentence)
                }
                // In a test with virtual time, the watch is not needed, because time does not pass while a task sleeps.
                if AppRuntime.shared.isHosted { return }
                try await Task.sleep(for: pause)
            } while !Task.isCancelled
        }
        defer { watch.cancel() }
        return try await body()
    }
}
