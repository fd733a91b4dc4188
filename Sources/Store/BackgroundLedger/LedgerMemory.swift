import ProcessSupport
import Foundation
import GRDB
import Synchronization

/// A ledger in memory: the same tables and rules, nothing durable. For virtual time, where a year has to pass in a second and
/// the disk is not what is tried.
///
/// Every process of a simulated host has a view of its own, so that an agent can tell its commits from those of others.
final class LedgerMemory: Sendable {
    /// One process's sight of it.
    final class View: Sendable {
        fileprivate struct State {
            var ownCommits = 0
            var mustTell = false
            var killHook: (@Sendable (LedgerCommitMoment) -> Bool)?
            /// What keeps its commits from becoming durable.
            var trouble: StoreError?
        }

        fileprivate let state = Mutex(State())

        var mustTell: Bool {
            state.withLock { state in
                defer { state.mustTell = false }
                return state.mustTell
            }
        }

        /// - Throws: ``LedgerDeath``, where whoever writes dies at this moment; what keeps it from committing.
        func mayDie(_ moment: LedgerCommitMoment) throws {
            if moment == .committing, let trouble = state.withLock({ $0.trouble }) { throw trouble }
            let killHook = state.withLock { $0.killHook }
            if killHook?(moment) == true { throw LedgerDeath() }
        }
    }

    private struct State {
        var commits = 0
        var listeners: [Int: @Sendable () -> Void] = [:]
        var nextListener = 0
    }

    let queue: DatabaseQueue
    private let state = Mutex(State())

    init() throws {
        queue = try DatabaseQueue()
        try Self.template.get().backup(to: queue)
    }

    init(_ queue: DatabaseQueue) { self.queue = queue }

    /// Made once: migrating costs more than everything that a short run does.
    private static let template: Result<DatabaseQueue, any Error> = Result {
        let queue = try DatabaseQueue()
        try LedgerSchema.migrator.migrate(queue)
        return queue
    }

    func count(_ view: View) {
        state.withLock { $0.commits += 1 }
        view.state.withLock { ($0.ownCommits, $0.mustTell) = ($0.ownCommits + 1, true) }
    }

    var commits: Int { state.withLock { $0.commits } }

    func commits(besides view: View) -> Int { commits - view.state.withLock { $0.ownCommits } }

    /// What the bell does on disk; then whoever was to die after this commit does.
    func tell(_ view: View) throws {
        let listeners = state.withLock { $0.listeners.sorted { $0.key < $1.key }.map(\.value) }
        for listener in listeners { listener() }
        try view.mayDie(.committed)
    }

    func add(_ listener: @escaping @Sendable () -> Void) -> Int {
        state.withLock { state in
            state.nextListener += 1
            state.listeners[state.nextListener] = listener
            return state.nextListener
        }
    }

    func remove(_ number: Int) { state.withLock { _ = $0.listeners.removeValue(forKey: number) } }

    fileprivate static func setTrouble(_ trouble: StoreError?, of view: View) { view.state.withLock { $0.trouble = trouble } }

    fileprivate static func setKillHook(_ killHook: (@Sendable (LedgerCommitMoment) -> Bool)?, of view: View) {
        view.state.withLock { $0.killHook = killHook }
    }
}

/// Where in a commit a process can die: before it, all is as it was; after it, nothing of what was to follow is done.
package enum LedgerCommitMoment: Sendable {
    case committing
    case committed
}

/// The process that wrote is dead.
struct LedgerDeath: Error {}

extension Ledger {
    /// A ledger in memory.
    ///
    /// - Parameter directories: say where files lie; made when absent.
    package convenience init(inMemory directories: AppDirectories, makesFolders: Bool = true) throws(StoreError) {
        if makesFolders { try directories.createStateFolders() }
        do {
            self.init(directories, try LedgerMemory())
        } catch {
            throw .failed(path: "memory", reason: "\(error)")
        }
        if makesFolders { recordSpool() }
    }

    /// The same ledger in memory, as another process sees it.
    package func anotherView() -> Ledger {
        guard let memory else { preconditionFailure("a ledger on disk is opened again instead") }
        return Ledger(directories, memory)
    }

    /// Commits to a ledger in memory so far, of all views.
    package var commitCount: Int { memory?.commits ?? 0 }

    /// Asked at every commit of this view that changes something. `true`: the process dies there.
    package func setKillHook(_ killHook: (@Sendable (LedgerCommitMoment) -> Bool)?) {
        LedgerMemory.setKillHook(killHook, of: view)
    }

    /// Every commit of this view that changes something fails so; `nil`: none does any more.
    package func setTrouble(_ trouble: StoreError?) { LedgerMemory.setTrouble(trouble, of: view) }

    /// A newer version of the program has migrated it, or it is as this version left it.
    package func setSuperseded(_ isSuperseded: Bool) throws(StoreError) {
        try write { transaction in
            try transaction.database.execute(sql: "DELETE FROM grdb_migrations WHERE identifier = '9999: newer'")
            if isSuperseded { try transaction.database.execute(sql: "INSERT INTO grdb_migrations VALUES ('9999: newer')") }
        }
    }

    /// A copy of all that is in a ledger in memory.
    package func backUp() throws -> Backup {
        let copy = try DatabaseQueue()
        try memory?.queue.backup(to: copy)
        return Backup(copy: copy)
    }

    /// The ledger is as it was when it was backed up. For those who have it open another file lies there: they are dead, or start afresh.
    package func restore(_ backup: Backup) throws {
        guard let memory else { return }
        try backup.copy.backup(to: memory.queue)
        memory.count(view)
    }

    /// A ledger in memory as it was at some moment.
    package struct Backup: Sendable {
        fileprivate let copy: DatabaseQueue
    }

    /// Called after every commit of any view, on the thread that committed. Returns a number for ``forget(_:)``.
    package func onCommit(_ action: @escaping @Sendable () -> Void) -> Int { memory?.add(action) ?? 0 }

    package func forget(_ listener: Int) { memory?.remove(listener) }
}
