import BackgroundLedger
import BackgroundNotices
import BackgroundScheduling
import TransferMachines

/// What the agent acts through. The composition root joins them; tests bring doubles.
package struct AgentPorts {
    package var transport: any Transport
    package var presenter: any Presenter
    package var conditions: any ConditionsSource
    /// Called at the start and when it changes: where the person's session is, as verbs reported. `nil`: nobody reported it yet.
    package var sessionChanged: @Sendable (SessionEnvironment?) -> Void

    package init(
        transport: any Transport, presenter: any Presenter, conditions: any ConditionsSource,
        sessionChanged: @escaping @Sendable (SessionEnvironment?) -> Void
    ) {
        self.transport = transport
        self.presenter = presenter
        self.conditions = conditions
        self.sessionChanged = sessionChanged
    }
}
