import Foundation
import Glibc

/// A point in the code at which a test can kill a process without clean-up (SIGKILL), to simulate a power cut.
///
/// With `BACKGROUND_CRASH_AT=name` the agent is killed when it reaches this point the first time. With `name:3` the agent is
/// killed when it reaches the point the third time. With `name#12` the agent is killed when transfer 12 reaches the point the
/// first time. `BACKGROUND_APP_CRASH_AT` has the same effect for processes of the app. Release builds ignore all kill points.
package enum KillPoint: String, CaseIterable, Sendable {
    // The agent's launches.
    /// The launch is in the ledger, but the process was not started.
    case launchCommitted = "agent.launchCommitted"
    /// The process of the launch is running. The agent does not watch the process yet, and the process number is not committed.
    case launchSpawned = "agent.spawned"
    /// The process of the launch is running and watched. The process number is being committed.
    case launchStarted = "agent.launchStarted"
    /// The process of the launch has ended. The result is being committed.
    case launchEnded = "agent.launchEnded"
    // The agent's transfers.
    /// The attempt is committed. No bytes were sent.
    case transferStarting = "agent.transferStarting"
    /// The response headers have arrived, but no bytes of the body.
    case transferHead = "agent.transferHead"
    /// The position of the bytes in the file is decided. The file is unchanged.
    case transferPrepared = "agent.transferPrepared"
    /// The received bytes are synced to the disk. The ledger does not contain the new length yet.
    case transferSynced = "agent.transferSynced"
    /// All bytes have arrived and their digest is computed. The ledger does not contain the digest yet.
    case transferProven = "agent.transferProven"
    /// The ledger has recorded that the file is verified. The file does not have its final name yet.
    case transferPlacing = "agent.transferPlacing"
    /// The file has its final name. In the ledger, the transfer is not complete yet.
    case transferPlaced = "agent.transferPlaced"
    /// The attempt has ended. The agent is evaluating the result.
    case transferEnded = "agent.transferEnded"
    /// The attempt has ended. The result is being committed.
    case transferCommitting = "agent.transferCommitting"
    // The agent's uploads. At each of these points, the next step of the upload is being committed.
    case uploadChooseName = "agent.upload.chooseName"
    case uploadPut = "agent.upload.put"
    case uploadCheck = "agent.upload.check"
    case uploadMove = "agent.upload.move"
    case uploadCreate = "agent.upload.create"
    case uploadAsk = "agent.upload.ask"
    case uploadAppend = "agent.upload.append"
    // The agent's notifications.
    /// The notification is on the screen. The ledger does not contain the server's number for the notification yet.
    case noticePresented = "agent.noticePresented"
    // The app's processes.
    /// The ledger contains the transfer. The app has not yet received the transfer's number in the ledger.
    case transferSubmitted = "app.transferSubmitted"
    /// A task was resumed, but `resume()` has not returned.
    case taskResumed = "app.taskResumed"
    /// An await was cancelled. The ledger still contains the await.
    case waiterLeaving = "app.waiterLeaving"
    /// An await was cancelled. The ledger does not contain the await any more.
    case waiterLeft = "app.waiterLeft"
    /// The handler returned, but the result is not committed.
    case beforeResult = "app.beforeResult"
    /// The result is committed. The process has not ended.
    case afterResult = "app.afterResult"

    /// Kills this process if it was started with this kill point.
    ///
    /// - Parameter transfer: the number of the transfer, if the point belongs to a transfer.
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
            // An unknown name is an error, because a test with a misspelled kill point would always succeed.
            precondition(KillPoint(rawValue: point) != nil, "BACKGROUND_CRASH_AT: unknown point \(point)")
            return (name: String(name), passage: parts.count > 1 ? Int(parts[1]) ?? 1 : 1)
        }()
        private static let passages = Passages()
    #endif
}

#if DEBUG
    private final class Passages: @unchecked Sendable {  // Unchecked, because the lock guards the only field
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
