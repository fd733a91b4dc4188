/// The port that starts app processes and sends signals to these processes. A started process holds the lock of its launch until
/// the process ends.
package protocol Launcher<Identity>: AnyObject {
    /// A value that identifies a process. A process id is not sufficient, because the system can assign the id of an ended
    /// process to another process.
    associatedtype Identity: Sendable
    /// Starts the process of a launch, and returns the identity of the process.
    func start(_ launch: Int64) throws -> Identity
    /// Begins to supervise a process that another agent started for a launch.
    func adopt(_ launch: Int64, _ process: Identity) -> Adoption
    /// Returns whether a process holds the launch's lock.
    func isAlive(_ launch: Int64) -> Bool
    /// Sends SIGTERM to the process. The ledger must already contain the reason why the process has to stop.
    func warn(_ launch: Int64)
    func kill(_ launch: Int64)
    /// Releases all resources of an ended launch.
    func forget(_ launch: Int64)
}

/// The result of adopting a process that another agent started.
package enum Adoption: Sendable {
    /// The agent can observe the process, so the end of the process will be reported.
    case watched
    /// The agent cannot see the process, but a process holds the lock of the launch. The agent cannot warn or kill this process.
    case outOfReach
    case gone
}

/// The ways in which a process can end.
package enum ProcessEnd: Sendable, Equatable {
    case exited(Int32)
    case signalled(Int32)
    /// The process was not a child of this agent, so its exit status is unknown.
    case unknown
}
