import ProcessSupport
import BackgroundLedger
import BackgroundNotices
import BackgroundScheduling
import Foundation
import TransferMachines

/// What the agent hears of the world. Each is handled on its loop, in order.
package enum AgentEvent: Sendable {
    case transport(TransportEvent)
    case presenter(PresenterEvent)
    case conditions(DesktopConditions)
    /// The clock was set: wall-clock rules are planned anew, and what lies behind may have been missed.
    case timeChanged
    /// The time zone changed: wall-clock rules are planned anew.
    case zoneChanged
    /// The host woke: the same, and the network may not be back yet.
    case resumed
    case sleepEvent(SleepEvent)
    /// The alarm's instant has come: the machine may have been woken.
    case alarmRang
    case alarmRefused(WakeRefusal)
    /// The process of a launch runs.
    case launchStarted(Int64, ProcessIdentity)
    /// No process could be started for a launch.
    case launchFailed(Int64, reason: String)
    case launchEnded(Int64, ProcessEnd)
    case processEnded(ProcessIdentity)
    /// Of a download there is news that others should know of: it goes on at an offset, or all that arrived is durable.
    case attemptMoved(AttemptID)
    /// A download's attempt ended, and what arrived is durable and, of a whole file, hashed.
    case attemptSettled(AttemptID, WireEnd)
    /// The file that was to be sent cannot be opened.
    case attemptWithoutSource(AttemptID, FileTrouble)
    /// An attempt was stopped on our side, and its part is durable.
    case attemptStopped(AttemptID)
    /// What became of a file that an earlier agent had proven.
    case proofChecked(Int64, FileProof.Finding)
    /// A whole file has its name, or cannot have it.
    /// `nil`: it was not wanted any more, and has no name.
    case filePlaced(Int64, FileName.Giving?)
    /// What the app is launched as is not there.
    case appIsMissing(AppIsMissing)
    /// Files that the app named have changed, or others in their folders.
    case filesChanged
    /// SIGTERM or SIGINT.
    case stopRequested

    /// Bytes moved, or an attempt came to rest: nothing else becomes due by it.
    var isOfTransport: Bool {
        switch self {
        case .transport, .attemptSettled: true
        case .presenter, .conditions, .timeChanged, .zoneChanged, .resumed, .sleepEvent, .alarmRang, .alarmRefused,
            .launchStarted, .launchFailed, .launchEnded, .processEnded, .attemptMoved, .attemptWithoutSource, .attemptStopped,
            .proofChecked, .filePlaced, .filesChanged, .appIsMissing, .stopRequested:
            false
        }
    }

    var isTimeChange: Bool {
        switch self {
        case .timeChanged, .zoneChanged, .resumed: true
        case .transport, .presenter, .conditions, .sleepEvent, .alarmRang, .alarmRefused, .launchStarted, .launchFailed,
            .launchEnded, .processEnded, .attemptMoved, .attemptSettled, .attemptWithoutSource, .attemptStopped, .proofChecked,
            .filePlaced, .filesChanged, .appIsMissing, .stopRequested:
            false
        }
    }
}

extension [AgentEvent] {
    /// For as long as nothing can be committed: of what only moves on, the last word.
    var withLatestProgressOnly: [AgentEvent] {
        var (progressed, moved): (Set<AttemptID>, Set<AttemptID>) = ([], [])
        let latest = reversed().filter { event in
            if case .transport(.progress(let attempt, _, _)) = event { return progressed.insert(attempt).inserted }
            if case .attemptMoved(let attempt) = event { return moved.insert(attempt).inserted }
            return true
        }
        return latest.reversed()
    }

    /// Of an attempt that has ended by now, how far it was is of no use to anybody.
    var withoutLateProgress: [AgentEvent] {
        let ended = Set(compactMap { if case .transport(.ended(let attempt, _)) = $0 { attempt } else { nil } })
        guard !ended.isEmpty else { return self }
        return filter { if case .transport(.progress(let attempt, _, _)) = $0 { !ended.contains(attempt) } else { true } }
    }
}
