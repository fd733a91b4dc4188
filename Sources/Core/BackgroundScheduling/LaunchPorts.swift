/// The port that starts app processes and sends signals to them. A started process holds the launch's lock until it ends.
package protocol Launcher<Identity>: AnyObject {
    /// A value that distinguishes a process from all other processes. A process id is not sufficient, because the system uses ids
    /// again.
    associatedtype Identity: Sendable
    /// Starts the process of a launch, and returns the identity of the process.
    func start(_ launch: Int64) throws -> Identity
    /// Begins to supervise the process of a launch that another agent started.
    func adopt(_ launch: Int64, _ process: Identity) -> Adoption
    /// Returns whether a process holds the launch's lock.
    func isAlive(_ launch: Int64) -> Bool
    /// Sends SIGTERM to the process. The reason is already in the ledger.
    func warn(_ launch: Int64)
    func kill(_ launch: Int64)
    /// Releases all resources of a launch that has ended.
    func forget(_ launch: Int64)
}

/// The result of adopting a process that another agent started.
package enum Adoption: Sendable {
    /// The end of the process is reported from now on.
    case watched
    /// The agent can see no process with this identity, but a process holds the launch's lock. The agent cannot warn or kill this
    /// process.
    case outOfReach
    case gone
}

/// The ways in which a process can end.
package enum ProcessEnd: Sendable, Equatable {
    case exited(Int32)
    case signalled(Int32)
    /// The process was not a child of this agent, so only its end is known.
    case unknown
}
