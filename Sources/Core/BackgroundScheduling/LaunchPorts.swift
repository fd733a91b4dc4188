/// The port of launching: starts app processes and pokes them. What it starts holds the launch's lock until it is gone.
package protocol Launcher<Identity>: AnyObject {
    /// Tells a process from every other. A process number alone does not.
    associatedtype Identity: Sendable
    /// Starts the process of a launch.
    func start(_ launch: Int64) throws -> Identity
    /// Takes over the process of a launch that another agent started.
    func adopt(_ launch: Int64, _ process: Identity) -> Adoption
    /// Some process holds the launch's lock.
    func isAlive(_ launch: Int64) -> Bool
    /// SIGTERM: the reason stands in the ledger by then.
    func warn(_ launch: Int64)
    func kill(_ launch: Int64)
    /// The launch is over: nothing of it is needed any more.
    func forget(_ launch: Int64)
}

/// The result of adopting a process that another agent started.
package enum Adoption: Sendable {
    /// The end of the process is reported from now on.
    case watched
    /// No process here has the identity, but a process holds the launch's lock. The agent cannot warn or kill that process.
    case outOfReach
    case gone
}

/// How a process ended.
package enum ProcessEnd: Sendable, Equatable {
    case exited(Int32)
    case signalled(Int32)
    /// It was not our child, so only that it is gone is known.
    case unknown
}
