import BackgroundLedger
import BackgroundNotices
import BackgroundScheduling
import TransferMachines

/// The ports through which the agent acts. The program connects the ports to implementations when it starts. Tests use test
/// doubles.
package struct AgentPorts {
    package var transport: any Transport
    package var presenter: any Presenter
    package var conditions: any ConditionsSource
    /// The port that starts the agent again after its exit. `nil` if no program can start the agent again. Without an activator,
    /// the agent runs as long as work is unfinished.
    package var activator: (any AgentActivator)?
    /// The port that wakes the machine. `nil` if the machine cannot be woken.
    package var wakeClock: (any WakeClock)?
    /// The port that controls sleep. `nil` if the machine has no sleep manager.
    package var sleepManager: (any SleepManager)?
    /// A function that is called at the agent's start and after each change of the session. The function receives the user's
    /// session that commands reported, or `nil` if no command reported a session yet.
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
