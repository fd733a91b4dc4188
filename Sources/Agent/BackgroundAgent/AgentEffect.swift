import ProcessSupport
import BackgroundLedger
import BackgroundNotices
import Foundation
import TransferMachines

/// An action that the agent performs after a commit. An effect contains ids and values but no handles. So an effect does no harm
/// if it is performed late or twice.
enum AgentEffect: Equatable {
    case startLaunch(Int64)
    /// Watches the process of a launch that an earlier agent started.
    case adoptLaunch(Int64, ProcessIdentity)
    case warnLaunch(Int64)
    case killLaunch(Int64)
    /// Handles the launch as ended, because the agent cannot kill its process.
    case endLaunch(Int64)
    case forgetLaunch(Int64)
    case startAttempt(Int64)
    /// Syncs the partial file to the disk, and then records that the transfer is stopped.
    case stopAttempt(Int64)
    /// An earlier agent verified the content of a file. This effect checks the content again.
    case checkProof(Int64, FileProof.Expectation)
    /// Renames a complete file to its final name, if the file did not change after its content was verified.
    case placeFile(Int64, part: URL, whole: URL, FileVersion)
    /// Removes the data of a cancelled upload from the server, if the server can be reached now.
    case tidyServer(WireRequest, AttemptID)
    case removeFile(URL)
    case removeOrphans
    /// - Parameter of: The notification server that assigned the number `replacing`.
    case present(Notice, replacing: UInt32?, of: String?)
    case withdraw(identifier: String, serverID: UInt32, of: String?)
    /// Makes the presenter report button presses on a notification that an earlier agent showed.
    case adoptNotification(identifier: String, serverID: UInt32, of: String?)
    case showBadge(Int)
    /// Checks whether the notification server responds.
    case askServer
    case watchProcess(ProcessIdentity)
    case sessionChanged(SessionEnvironment?)
    /// Sets the alarm that wakes the machine. `nil` removes the alarm.
    case armAlarm(Date?)
    case lookAtMachine
    case delaySleep
    case allowSleep
    case suspendMachine

    /// `true` if, after the effect, only transfers can have new work.
    var isOfTransfersAlone: Bool {
        switch self {
        case .startAttempt, .stopAttempt, .tidyServer, .removeFile, .removeOrphans: true
        case .startLaunch, .adoptLaunch, .warnLaunch, .killLaunch, .endLaunch, .forgetLaunch, .checkProof, .placeFile, .present,
            .askServer, .adoptNotification, .showBadge, .withdraw, .watchProcess, .sessionChanged, .armAlarm, .lookAtMachine,
            .delaySleep, .allowSleep, .suspendMachine:
            false
        }
    }
}
