/// The port of launching: starts app processes and pokes them. What it starts holds the launch's lock until it is gone.
package protocol Launcher: AnyObject {
    /// Starts the process of a launch. Returns its process number.
    func start(_ launch: Int64) throws -> Int32
    /// Takes over the process of a launch that another agent started. `false`: it is gone.
    func adopt(_ launch: Int64, pid: Int32) -> Bool
    /// Some process holds the launch's lock.
    func isAlive(_ launch: Int64) -> Bool
    /// SIGTERM: the reason stands in the ledger by then.
    func warn(_ launch: Int64)
    func kill(_ launch: Int64)
    /// The launch is over: nothing of it is needed any more.
    func forget(_ launch: Int64)
}

/// How a process ended.
package enum ProcessEnd: Sendable, Equatable {
    case exited(Int32)
    case signalled(Int32)
    /// It was not our child, so only that it is gone is known.
    case unknown
}
