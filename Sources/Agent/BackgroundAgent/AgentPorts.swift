import BackgroundLedger
import BackgroundNotices
import BackgroundScheduling
import TransferMachines

/// What the agent acts through. The composition root joins them; tests bring doubles.
public struct AgentPorts {
    public var transport: any Transport
    public var presenter: any Presenter
    public var conditions: any ConditionsSource
    /// Called at the start and when it changes: where the person's session is, as verbs reported. `nil`: nobody reported it yet.
    public var sessionChanged: @Sendable (SessionEnvironment?) -> Void

    public init(
        transport: any Transport, presenter: any Presenter, conditions: any ConditionsSource,
        sessionChanged: @escaping @Sendable (SessionEnvironment?) -> Void
    ) {
        self.transport = transport
        self.presenter = presenter
        self.conditions = conditions
        self.sessionChanged = sessionChanged
    }
}
