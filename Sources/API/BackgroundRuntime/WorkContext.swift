import ProcessSupport

/// Identifies the simulated process of a test host to which work belongs. Callbacks on dispatch queues need this type, because
/// task-local values are not available in these callbacks.
///
/// If no test host is used, the cost is one comparison.
package struct WorkContext: Sendable {
    private struct Hosted: Sendable {
        let runtime: AppRuntime
        let activity: HostedActivity
        let launch: LaunchContext?
        let command: HostedCommand?
        let environment: [String: String]?
        let isTestHosted: Bool
    }

    private let hosted: Hosted?

    /// Captures the simulated process of the current Swift task.
    package init() {
        guard AppRuntime.isOnTestHost else {
            hosted = nil
            return
        }
        hosted = Hosted(
            runtime: AppRuntime.shared, activity: AppRuntime.shared.part { HostedActivity() }, launch: LaunchContext.own,
            command: HostedCommand.current, environment: ThisProcess.givenEnvironment, isTestHosted: AppRuntime.isTestHosted)
    }

    /// Returns a closure that runs `body` as part of the captured process. The caller must run this closure, because virtual time
    /// stops until the closure has run.
    package func block(_ body: @escaping @Sendable () -> Void) -> @Sendable () -> Void {
        guard let hosted else { return body }
        hosted.activity.enter()
        return {
            AppRuntime.$isTestHosted.withValue(hosted.isTestHosted) {
                AppRuntime.$ofBlock.withValue(hosted.runtime) {
                    // The task-local launch is set only if the process of the launch has not ended. The app may use a session
                    // after the launch that created the session has ended.
                    LaunchContext.$own.withValue(hosted.launch.flatMap { $0.isLiving ? $0 : nil }) {
                        HostedCommand.$current.withValue(hosted.command) {
                            ThisProcess.$givenEnvironment.withValue(hosted.environment) { body() }
                        }
                    }
                }
            }
            hosted.activity.leave()
        }
    }
}
