import ProcessSupport
import BackgroundLedger
import BackgroundNotices
import Foundation
import TransferMachines

/// What is to be done after a commit. Ids and values, no live handles: doing it late or twice does no harm.
enum AgentEffect: Equatable {
    case startLaunch(Int64)
    /// An earlier agent started its process: it is watched from now on.
    case adoptLaunch(Int64, ProcessIdentity)
    case warnLaunch(Int64)
    case killLaunch(Int64)
    /// Its process is not ours to kill: it counts as gone.
    case endLaunch(Int64)
    case forgetLaunch(Int64)
    case startAttempt(Int64)
    /// Its part becomes durable, and then the transfer hears that it is stopped.
    case stopAttempt(Int64)
    /// What an earlier agent had proven is looked at again.
    case checkProof(Int64, FileProof.Expectation)
    /// A whole file gets its name, if it still is the file that was proven.
    case placeFile(Int64, part: URL, whole: URL, FileSight)
    /// What a cancelled upload left on the server is taken away, if the server can be reached now.
    case tidyServer(WireRequest, AttemptID)
    case removeFile(URL)
    case removeOrphans
    /// - Parameter of: the server that gave the number.
    case present(Notice, replacing: UInt32?, of: String?)
    case withdraw(identifier: String, serverID: UInt32, of: String?)
    /// Its buttons are heard again.
    case takeOver(identifier: String, serverID: UInt32, of: String?)
    case showBadge(Int)
    /// Whether the notification server answers.
    case askServer
    case watchProcess(ProcessIdentity)
    case sessionChanged(SessionEnvironment?)
    /// The alarm that wakes the machine; `nil`: none.
    case armAlarm(Date?)
    case lookAtMachine
    case delaySleep
    case allowSleep
    case suspendMachine

    /// Performed, it makes nothing else due.
    var isOfTransfersAlone: Bool {
        switch self {
        case .startAttempt, .stopAttempt, .tidyServer, .removeFile, .removeOrphans: true
        case .startLaunch, .adoptLaunch, .warnLaunch, .killLaunch, .endLaunch, .forgetLaunch, .checkProof, .placeFile, .present,
            .askServer, .takeOver, .showBadge, .withdraw, .watchProcess, .sessionChanged, .armAlarm, .lookAtMachine,
            .delaySleep, .allowSleep, .suspendMachine:
            false
        }
    }
}
