import Dispatch
import Foundation
import FoundationNetworking

/// The steps of a background task from its first `resume()` to its row in the ledger.
///
/// The file of an upload is copied during these steps. Other threads can cancel, suspend, change or resume the task at the same
/// time.
enum TaskEntry: Sendable {
    case none
    case beginning(Beginning)
    case row(Int64)

    struct Beginning: Sendable {
        /// The group is empty after the task received its row or was refused.
        fileprivate let end = DispatchGroup()
        /// `true` if the transaction has begun. Calls of other threads wait until the transaction has ended.
        fileprivate var isCommitting = false
        /// `true` after another thread called `suspend()`, and `false` after another thread called `resume()`. `nil` without such a
        /// call.
        var isHeld: Bool?
        /// `true` if the app changed a property of the task.
        var isChanged = false
    }

    var row: Int64? { if case .row(let row) = self { row } else { nil } }

    /// Changes the state of a task that is being begun. The method has no effect on a task in another step.
    mutating func updateBeginning(_ change: (inout Beginning) -> Void) {
        guard case .beginning(var beginning) = self else { return }
        change(&beginning)
        self = .beginning(beginning)
    }
}

extension URLSessionTask {
    /// The work of one `resume()` call.
    enum Claim {
        /// The calling thread begins the task.
        case begin
        /// Another thread begins the task. `resume()` waits until the task is durable.
        case elsewhere
        case release(Int64)
        case refused(URLError)
    }

    /// Lets one thread begin the task if several threads resume it.
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

    /// - Returns: the calls of other threads after the task was claimed, or `nil` if the task was cancelled and is not written.
    func beginCommitting() -> TaskEntry.Beginning? {
        facts.withLock { facts in
            guard facts.error == nil, case .beginning(var beginning) = facts.entry else { return nil }
            beginning.isCommitting = true
            facts.entry = .beginning(beginning)
            return beginning
        }
    }

    /// - Parameter row: `nil` if the task was refused or cancelled.
    func endBeginning(row: Int64? = nil) {
        facts.withLock { facts in
            guard case .beginning(let beginning) = facts.entry else { return }
            facts.entry = row.map { .row($0) } ?? .none
            beginning.end.leave()
        }
    }

    /// Waits for the end of a transaction that writes the task.
    ///
    /// - Parameter note: called if the task has no row, before another thread can begin to write the row.
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
