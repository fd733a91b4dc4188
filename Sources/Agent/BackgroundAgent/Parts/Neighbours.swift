import ProcessSupport
import BackgroundLedger
import Foundation

/// The processes that wait for this agent's work, and the session of the person.
struct Neighbours {
    /// Whose end is heard of.
    private var watched: Set<ProcessIdentity> = []
    /// Whose end was heard of in this pass.
    private var ended: Set<ProcessIdentity> = []
    private var session = Session.unreported

    private enum Session: Equatable {
        /// The presenter has not heard of any, or has to hear of it again.
        case unreported
        case reported(SessionEnvironment?)
    }

    mutating func note(ended process: ProcessIdentity) { ended.insert(process) }

    func hasEnded(_ process: ProcessIdentity) -> Bool { ended.contains(process) }

    /// The connection to the session is lost: it is reported again.
    mutating func noteLostBus() { session = .unreported }

    /// A verb may have said where the person's session is. `true`: it is another one.
    mutating func lookAtSession(_ pass: inout Pass) throws -> Bool {
        let current = try pass.transaction.fact(.sessionEnvironment)
        guard session != .reported(current) else { return false }
        session = .reported(current)
        pass.perform(.sessionChanged(current))
        return true
    }

    /// Waiters and attachments whose process is gone are taken away; the others are watched.
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
