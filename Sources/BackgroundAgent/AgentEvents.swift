import BackgroundLedger
import BackgroundNotices
import BackgroundScheduling
import Foundation
import TransferMachines

/// What the agent hears of the world. Each is handled on its loop, one at a time.
public enum AgentEvent: Sendable {
    case transport(TransportEvent)
    case presenter(PresenterEvent)
    /// All that arrived of a download is on the disk for good, and nothing more comes for now.
    case transferSynced(AttemptID)
    /// A whole file has its name, or cannot have it.
    case transferPlaced(Int64, FileTrouble?)
    case conditions(DesktopConditions)
    /// The clock was set: wall-clock rules are planned anew, and what lies behind may have been missed.
    case timeChanged
    /// The time zone changed: wall-clock rules are planned anew.
    case zoneChanged
    /// The machine woke: the same, and the network may not be back yet.
    case resumed
    case launchEnded(Int64, ProcessEnd)
    case processEnded(ProcessIdentity)
    /// SIGTERM or SIGINT.
    case stopRequested

    var isOfTransport: Bool {
        switch self {
        case .transport: true
        case .transferSynced, .presenter, .transferPlaced, .conditions, .timeChanged, .zoneChanged, .resumed, .launchEnded,
            .processEnded, .stopRequested:
            false
        }
    }
}

extension [AgentEvent] {
    /// Of an attempt that has ended by now, how far it was is of no use to anybody.
    var withoutLateProgress: [AgentEvent] {
        let ended = Set(compactMap { if case .transport(.ended(let attempt, _)) = $0 { attempt } else { nil } })
        guard !ended.isEmpty else { return self }
        return filter { if case .transport(.progress(let attempt, _, _)) = $0 { !ended.contains(attempt) } else { true } }
    }
}

/// What the agent acts through. The composition root joins them; tests bring doubles.
public struct AgentPorts {
    public var transport: any Transport
    public var presenter: any Presenter
    public var conditions: any ConditionsSource
    /// Called at the start and when it changes: where the person's session is, as verbs told. `nil`: nobody told yet.
    public var sessionChanged: @Sendable (SessionEnvironment?) -> Void

    public init(
        transport: any Transport, presenter: any Presenter, conditions: any ConditionsSource,
        sessionChanged: @escaping @Sendable (SessionEnvironment?) -> Void
    ) {
        self.transport = transport
        self.presenter = presenter
        self.conditions = conditions
        self.sessionChanged = sessionChanged
    }
}

/// What is to be done after a commit. Ids, no live handles: doing it late or twice does no harm.
enum AgentEffect: Equatable {
    case startLaunch(Int64)
    case warnLaunch(Int64)
    case killLaunch(Int64)
    case forgetLaunch(Int64)
    case startTransfer(Int64)
    case stopAttempt(Int64)
    /// A whole file gets its name.
    case placeFile(Int64)
    /// What a cancelled upload left on the server is taken away, if the server can be reached now.
    case tidyServer(WireRequest, AttemptID)
    case removeFile(URL)
    case removeOrphans
    case present(Notice, replacing: UInt32?)
    case withdraw(identifier: String, serverID: UInt32)
    case watchProcess(ProcessIdentity)
    case sessionChanged(SessionEnvironment?)

    /// Performed, it makes nothing else due.
    var isOfTransfersAlone: Bool {
        switch self {
        case .startTransfer, .stopAttempt, .tidyServer, .removeFile, .removeOrphans: true
        case .startLaunch, .warnLaunch, .killLaunch, .forgetLaunch, .placeFile, .present, .withdraw, .watchProcess,
            .sessionChanged:
            false
        }
    }
}
