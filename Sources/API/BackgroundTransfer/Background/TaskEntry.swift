import Dispatch
import Foundation
import FoundationNetworking

/// The step that a background task has reached between the first `resume()` and the write of the task's row to the ledger.
///
/// The file of an upload is copied during these steps. Other threads can cancel, suspend, change or resume the task at the same
/// time.
enum TaskEntry: Sendable {
    case none
    case beginning(Beginning)
    case row(Int64)

    struct Beginning: Sendable {
        /// A group on which other threads wait until the ledger contains the task's row or the task was refused.
        fileprivate let end = DispatchGroup()
        /// `true` if the transaction that writes the task has begun. Other threads that change the task then wait until the
        /// transaction has ended.
        fileprivate var isCommitting = false
        /// `true` after another thread called `suspend()`, and `false` after another thread called `resume()`. `nil` if no other
        /// thread called these methods.
        var isHeld: Bool?
        /// `true` if the app changed a property of the task.
        var isChanged = false
    }

    var row: Int64? { if case .row(let row) = self { row } else { nil } }

    /// Changes the state of a task that a thread is beginning. The method has no effect if the task is in another step.
    mutating func updateBeginning(_ change: (inout Beginning) -> Void) {
        guard case .beginning(var beginning) = self else { return }
        change(&beginning)
        self = .beginning(beginning)
    }
}

extension URLSessionTask {
    /// The work that a call of `resume()` has to do.
    enum Claim {
        /// The calling thread begins the task.
        case begin
        /// Another thread begins the task. `resume()` waits until the task is stored in the ledger.
        case elsewhere
        case release(Int64)
        case refused(URLError)
    }

    /// Decides which thread begins the task if several threads resume the task at the same time.
    func claim() -> Claim {
        facts.withLock { facts in
            if let error = facts.error { return .refused(error) }
            switch facts.entry {
            case .none:
                let beginning = TaskEntry.Beginning()
                beginning.end.enter()
                facts.entry = .beginning(beginning)
                return .begin
            case .beginning: return .elsewhere
            case .row(let row): return .release(row)
            }
        }
    }

    /// - Returns: the changes that other threads requested after `claim()`, or `nil` if the task was cancelled and must not be
    ///   written.
    func beginCommitting() -> TaskEntry.Beginning? {
        facts.withLock { facts in
            guard facts.error == nil, case .beginning(var beginning) = facts.entry else { return nil }
            beginning.isCommitting = true
            facts.entry = .beginning(beginning)
            return beginning
        }
    }

    /// - Parameter row: the number of the task's row, or `nil` if the task was refused or cancelled.
    func endBeginning(row: Int64? = nil) {
        facts.withLock { facts in
            guard case .beginning(let beginning) = facts.entry else { return }
            facts.entry = row.map { .row($0) } ?? .none
            beginning.end.leave()
        }
    }

    /// Returns the number of the task's row. If a transaction is writing the task, waits for the end of the transaction.
    ///
    /// - Parameter note: a closure that records the caller's change if the task has no row. The closure is called before another
    ///   thread can begin to write the row.
    /// - Returns: the task's number in the ledger.
    func row(orNoting note: (inout Facts) -> Void) -> Int64? {
        while true {
            let (row, end) = facts.withLock { facts -> (Int64?, DispatchGroup?) in
                if case .beginning(let beginning) = facts.entry, beginning.isCommitting { return (nil, beginning.end) }
                if facts.entry.row == nil { note(&facts) }
                return (facts.entry.row, nil)
            }
            guard let end else { return row }
            end.wait()
        }
    }

    /// Waits until the thread that begins the task has written the task's row.
    func waitForBeginning() {
        guard case .beginning(let beginning) = facts.withLock({ $0.entry }) else { return }
        beginning.end.wait()
    }
}
