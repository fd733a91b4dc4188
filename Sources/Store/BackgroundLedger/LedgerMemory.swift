import ProcessSupport
import Foundation
import GRDB
import Synchronization

/// The shared state of a ledger in memory. Such a ledger has the same tables and rules as a ledger on the disk, but stores
/// nothing on the disk. Tests in virtual time use such a ledger, because a simulated year must pass within a second and the disk
/// is not tested.
///
/// Every simulated process has its own view, so that an agent can distinguish its own commits from the commits of other
/// processes.
final class LedgerMemory: Sendable {
    /// The view that one simulated process has of the ledger.
    final class View: Sendable {
        fileprivate struct State {
            var ownCommits = 0
            var mustNotify = false
            var killHook: (@Sendable (LedgerCommitStage) -> Bool)?
            /// The error with which the commits of the view fail.
            var trouble: StoreError?
        }

        fileprivate let state = Mutex(State())

        var mustNotify: Bool {
            state.withLock { state in
                defer { state.mustNotify = false }
                return state.mustNotify
            }
        }

        /// - Throws: ``LedgerDeath`` if the test kills the writing process at this stage, or the error that the test has set for
        ///   the view.
        func mayDie(_ moment: LedgerCommitStage) throws {
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

    /// The migrated ledger that is copied for each new ledger. A copy is faster, because the migration takes longer than all
    /// other work of a short test.
    private static let template: Result<DatabaseQueue, any Error> = Result {
        let queue = try DatabaseQueue()
        try LedgerSchema.migrator.migrate(queue)
        return queue
    }

    func count(_ view: View) {
        state.withLock { $0.commits += 1 }
        view.state.withLock { ($0.ownCommits, $0.mustNotify) = ($0.ownCommits + 1, true) }
    }

    var commits: Int { state.withLock { $0.commits } }

    func commits(besides view: View) -> Int { commits - view.state.withLock { $0.ownCommits } }

    /// Notifies the listeners of a commit, like the change notification of a ledger on the disk. If a test requested it, the
    /// writing process is killed after that.
    func notify(_ view: View) throws {
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

    fileprivate static func setKillHook(_ killHook: (@Sendable (LedgerCommitStage) -> Bool)?, of view: View) {
        view.state.withLock { $0.killHook = killHook }
    }
}

/// The stages of a commit at which a test can kill a process. If the process is killed before the commit, nothing has changed. If
/// the process is killed after the commit, the steps after the commit are not executed.
package enum LedgerCommitStage: Sendable {
    case committing
    case committed
}

/// The error that is thrown in a simulated process that a test kills during a write.
struct LedgerDeath: Error {}

extension Ledger {
    /// Creates a ledger in memory.
    ///
    /// - Parameter directories: the folders of the app. The folders are created if they do not exist.
    package convenience init(inMemory directories: AppDirectories, makesFolders: Bool = true) throws(StoreError) {
        if makesFolders { try directories.createStateFolders() }
        do {
            self.init(directories, try LedgerMemory())
        } catch {
            throw .failed(path: "memory", reason: "\(error)")
        }
        if makesFolders { recordSpool() }
    }

    /// Returns another view of the same ledger in memory, for another simulated process.
    package func anotherView() -> Ledger {
        guard let memory else { preconditionFailure("several views are possible only for a ledger in memory") }
        return Ledger(directories, memory)
    }

    /// The total number of commits to a ledger in memory, by all views.
    package var commitCount: Int { memory?.commits ?? 0 }

    /// Sets a function that is called at every commit of this view that changes rows. If the function returns `true`, the
    /// simulated process is killed.
    package func setKillHook(_ killHook: (@Sendable (LedgerCommitStage) -> Bool)?) {
        LedgerMemory.setKillHook(killHook, of: view)
    }

    /// Sets the error that every commit of this view throws if the commit changes rows. With `nil`, commits succeed again.
    package func setTrouble(_ trouble: StoreError?) { LedgerMemory.setTrouble(trouble, of: view) }

    /// Marks the ledger as migrated by a newer version of the program, or removes the mark.
    package func setSuperseded(_ isSuperseded: Bool) throws(StoreError) {
        try write { transaction in
            try transaction.database.execute(sql: "DELETE FROM grdb_migrations WHERE identifier = '9999: newer'")
            if isSuperseded { try transaction.database.execute(sql: "INSERT INTO grdb_migrations VALUES ('9999: newer')") }
        }
    }

    /// Returns a copy of a ledger in memory.
    package func backUp() throws -> Backup {
        let copy = try DatabaseQueue()
        try memory?.queue.backup(to: copy)
        return Backup(copy: copy)
    }

    /// Restores the content of the backup. On a real disk, the processes would detect that the file was replaced. For this
    /// reason, the test kills or restarts the simulated processes.
    package func restore(_ backup: Backup) throws {
        guard let memory else { return }
        try backup.copy.backup(to: memory.queue)
        memory.count(view)
    }

    /// A saved copy of the content of a ledger in memory.
    package struct Backup: Sendable {
        fileprivate let copy: DatabaseQueue
    }

    /// Registers a function that is called after every commit of any view, on the thread that committed. Returns a number for
    /// ``forget(_:)``.
    package func onCommit(_ action: @escaping @Sendable () -> Void) -> Int { memory?.add(action) ?? 0 }

    package func forget(_ listener: Int) { memory?.remove(listener) }
}
