import BackgroundLedger
import BackgroundNotices
import BackgroundScheduling
import TransferMachines

/// The interfaces through which the agent acts. The composition root connects them; tests use test doubles.
package struct AgentPorts {
    package var transport: any Transport
    package var presenter: any Presenter
    package var conditions: any ConditionsSource
    /// Starts the agent again after it exited. `nil` if this is impossible; then the agent runs as long as work is left.
    package var activator: (any AgentActivator)?
    /// Wakes the machine; `nil` if the machine cannot be woken.
    package var wakeClock: (any WakeClock)?
    /// Controls sleep; `nil` without a sleep manager.
    package var sleepManager: (any SleepManager)?
    /// Called at the start and after each change, with the user's session as commands reported it. `nil` if no command has reported it
    /// yet.
    package var sessionChanged: @Sendable (SessionEnvironment?) -> Void

    package init(
        transport: any Transport, presenter: any Presenter, conditions: any ConditionsSource,
        activator: (any AgentActivator)? = nil, wakeClock: (any WakeClock)? = nil, sleepManager: (any SleepManager)? = nil,
        sessionChanged: @escaping @Sendable (SessionEnvironment?) -> Void
    ) {
        self.transport = transport
        self.presenter = presenter
        self.conditions = conditions
        self.activator = activator
        (self.wakeClock, self.sleepManager) = (wakeClock, sleepManager)
        self.sessionChanged = sessionChanged
    }
}
