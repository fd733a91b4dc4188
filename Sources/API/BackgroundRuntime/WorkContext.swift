import ProcessSupport

/// The simulated process to which work belongs on a test host. This type is used for callbacks on queues, because these callbacks
/// have no task-local values.
///
/// Cost: one comparison in a process that does not run on a test host.
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

    /// Captures the process of the current Swift task.
    package init() {
        guard AppRuntime.isOnTestHost else {
            hosted = nil
            return
        }
        hosted = Hosted(
            runtime: AppRuntime.shared, activity: AppRuntime.shared.part { HostedActivity() }, launch: LaunchContext.own,
            command: HostedCommand.current, environment: ThisProcess.givenEnvironment, isTestHosted: AppRuntime.isTestHosted)
    }

    /// Returns a block that calls `body` as part of the captured process. The caller must run the block, because virtual time
    /// does not pass before the block has run.
    package func block(_ body: @escaping @Sendable () -> Void) -> @Sendable () -> Void {
        guard let hosted else { return body }
        hosted.activity.enter()
        return {
            AppRuntime.$isTestHosted.withValue(hosted.isTestHosted) {
                AppRuntime.$ofBlock.withValue(hosted.runtime) {
                    // The launch is set only if it is still running. The app may use a session after the end of the launch that
                    // created the session.
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
