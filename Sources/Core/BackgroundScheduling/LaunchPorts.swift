/// The port of launching, which starts app processes and signals them. A started process holds the launch's lock until it ends.
package protocol Launcher<Identity>: AnyObject {
    /// A value that distinguishes a process from every other process. A process number alone does not.
    associatedtype Identity: Sendable
    /// Starts the process of a launch.
    func start(_ launch: Int64) throws -> Identity
    /// Takes over the process of a launch that another agent started.
    func adopt(_ launch: Int64, _ process: Identity) -> Adoption
    /// Returns whether a process holds the launch's lock.
    func isAlive(_ launch: Int64) -> Bool
    /// Sends SIGTERM. The reason is already in the ledger.
    func warn(_ launch: Int64)
    func kill(_ launch: Int64)
    /// Releases all resources of a launch that is over.
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
    /// The process was not a child of this agent, so only its end is known.
    case unknown
}
