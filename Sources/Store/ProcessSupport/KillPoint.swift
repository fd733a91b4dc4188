import Foundation
import Glibc

/// The points at which a test can have a process killed, as a power cut would: SIGKILL, no clean-up.
///
/// `BACKGROUND_CRASH_AT=name` kills the agent at its first passage; `name:3` at the third; `name#12` at the first of transfer 12.
/// `BACKGROUND_APP_CRASH_AT` is the same for the processes of the app. Debug builds only: a release passes every point.
package enum KillPoint: String, CaseIterable, Sendable {
    // The agent's launches.
    /// The launch stands in the ledger; its process was not started.
    case launchCommitted = "agent.launchCommitted"
    /// The process runs; nobody watches it yet, and its number is not committed.
    case launchSpawned = "agent.spawned"
    /// The process runs and is watched; its number is being committed.
    case launchStarted = "agent.launchStarted"
    /// The process is gone; what follows is being committed.
    case launchEnded = "agent.launchEnded"
    // The agent's transfers.
    /// The attempt is committed; nothing went out.
    case transferStarting = "agent.transferStarting"
    /// The head of the answer is here; no byte is.
    case transferHead = "agent.transferHead"
    /// Where the bytes go is decided; the file is untouched.
    case transferPrepared = "agent.transferPrepared"
    /// What arrived is on the disk for good; the ledger does not know.
    case transferSynced = "agent.transferSynced"
    /// Every byte is here and hashed; the ledger does not know.
    case transferProven = "agent.transferProven"
    /// The ledger knows that it is proven; it has no name.
    case transferPlacing = "agent.transferPlacing"
    /// It has its name; the ledger does not know.
    case transferPlaced = "agent.transferPlaced"
    /// The end of the attempt is being judged.
    case transferEnded = "agent.transferEnded"
    /// The end of the attempt is being committed.
    case transferCommitting = "agent.transferCommitting"
    // The agent's uploads: what comes next is being committed.
    case uploadChooseName = "agent.upload.chooseName"
    case uploadPut = "agent.upload.put"
    case uploadCheck = "agent.upload.check"
    case uploadMove = "agent.upload.move"
    case uploadCreate = "agent.upload.create"
    case uploadAsk = "agent.upload.ask"
    case uploadAppend = "agent.upload.append"
    // The agent's notifications.
    /// It stands on the screen; the ledger does not know.
    case noticePresented = "agent.noticePresented"
    // The app's processes.
    /// A transfer is in the ledger; the app does not know its number.
    case transferSubmitted = "app.transferSubmitted"
    /// A task was resumed; its caller does not know.
    case taskResumed = "app.taskResumed"
    /// An await was cancelled; the ledger does not know.
    case waiterLeaving = "app.waiterLeaving"
    /// An await was cancelled, and the ledger knows.
    case waiterLeft = "app.waiterLeft"
    /// The handler returned; its result is not committed.
    case beforeResult = "app.beforeResult"
    /// The result is committed; the process has not ended.
    case afterResult = "app.afterResult"

    /// The process has come to this point.
    ///
    /// - Parameter transfer: which one it is about.
    package static func reach(_ point: KillPoint, _ transfer: Int64? = nil) {
        #if DEBUG
            guard let wanted, wanted.name == point.rawValue || transfer.map({ wanted.name == "\(point.rawValue)#\($0)" }) == true,
                passages.count() == wanted.passage
            else { return }
            kill(getpid(), SIGKILL)
        #endif
    }

    #if DEBUG
        private static let wanted: (name: String, passage: Int)? = {
            guard let text = ProcessInfo.processInfo.environment["BACKGROUND_CRASH_AT"] else { return nil }
            let parts = text.split(separator: ":")
            guard let name = parts.first else { return nil }
            let point = String(name.prefix { $0 != "#" })
            // A misspelt point would let every test of it pass.
            precondition(KillPoint(rawValue: point) != nil, "BACKGROUND_CRASH_AT: there is no point named \(point)")
            return (name: String(name), passage: parts.count > 1 ? Int(parts[1]) ?? 1 : 1)
        }()
        private static let passages = Passages()
    #endif
}

#if DEBUG
    private final class Passages: @unchecked Sendable {  // because the lock guards the only field
        private let lock = NSLock()
        private var passed = 0

        func count() -> Int {
            lock.withLock {
                passed += 1
                return passed
            }
        }
    }
#endif
