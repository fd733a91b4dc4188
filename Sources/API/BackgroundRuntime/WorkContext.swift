import ProcessSupport

/// The process that some work belongs to on a test host, for callbacks on queues, which do not carry task-local values.
///
/// Cost: nothing in a process of its own.
package struct WorkContext: Sendable {
    private let launch: LaunchContext?
    private let command: HostedCommand?
    private let environment: [String: String]?
    private let isTestHosted: Bool

    /// That of the work that asks.
    package init() {
        (launch, command, environment) = (LaunchContext.own, HostedCommand.current, ThisProcess.givenEnvironment)
        isTestHosted = AppRuntime.isTestHosted
    }

    /// Runs a callback as part of that process.
    package func run<Value>(_ body: () throws -> Value) rethrows -> Value {
        guard isTestHosted || launch != nil else { return try body() }
        return try AppRuntime.$isTestHosted.withValue(isTestHosted) {
            try LaunchContext.$own.withValue(launch) {
                try HostedCommand.$current.withValue(command) {
                    try ThisProcess.$givenEnvironment.withValue(environment) { try body() }
                }
            }
        }
    }
}
