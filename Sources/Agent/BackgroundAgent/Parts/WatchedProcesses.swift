import ProcessSupport
import BackgroundLedger
import Foundation

/// The processes that wait for results of this agent, and the user's session.
struct WatchedProcesses {
    /// The processes that this agent watches. The agent is notified when such a process ends.
    private var watched: Set<ProcessIdentity> = []
    /// The processes whose end was reported in this pass.
    private var ended: Set<ProcessIdentity> = []
    private var session = Session.unreported

    private enum Session: Equatable {
        /// The user's session was not reported to the presenter, or has to be reported again.
        case unreported
        case reported(SessionEnvironment?)
    }

    mutating func record(ended process: ProcessIdentity) { ended.insert(process) }

    func hasEnded(_ process: ProcessIdentity) -> Bool { ended.contains(process) }

    /// Handles a lost connection to the session bus. The session is then reported again.
    mutating func handleBusLoss() { session = .unreported }

    /// Reads the session that a command may have reported. Returns `true` if the session differs from the last session.
    mutating func readSessionEnvironment(_ pass: inout Pass) throws -> Bool {
        let current = try pass.transaction.fact(.sessionEnvironment)
        guard session != .reported(current) else { return false }
        session = .reported(current)
        pass.perform(.sessionChanged(current))
        return true
    }

    /// Removes waiters and attachments of ended processes, and watches the other processes.
    mutating func plan(_ pass: inout Pass) throws {
        let waiters = try pass.transaction.waiters()
        let attached = try pass.transaction.attachedProcesses()
        for waiter in waiters where ended.contains(waiter.process) {
            guard let id = waiter.id else { continue }
            try pass.transaction.removeWaiter(id, grace: pass.settings.grace, now: pass.now)
        }
        for process in attached.intersection(ended) { try pass.transaction.detach(process) }
        let hosts =
            try pass.transaction.requests(of: .continuedProcessing).compactMap(\.host)
            + pass.transaction.liveLaunches().compactMap(\.host)
        let living = Set(waiters.map(\.process) + hosts).union(attached).subtracting(ended)
        for process in living where watched.insert(process).inserted { pass.perform(.watchProcess(process)) }
        watched.formIntersection(living)
        ended = []
    }
}
