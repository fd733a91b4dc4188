import BackgroundLedger
import BackgroundNotices
import BackgroundScheduling
import TransferMachines

/// What the agent acts through. The composition root joins them; tests bring doubles.
package struct AgentPorts {
    package var transport: any Transport
    package var presenter: any Presenter
    package var conditions: any ConditionsSource
    /// Starts the agent again after it left; `nil`: nobody does, and it stays as long as work is left.
    package var activator: (any AgentActivator)?
    /// Wakes the machine; `nil`: nothing here can.
    package var wakeClock: (any WakeClock)?
    /// `nil`: nobody manages sleep.
    package var sleepManager: (any SleepManager)?
    /// Called at the start and when it changes: where the person's session is, as verbs reported. `nil`: nobody reported it yet.
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
