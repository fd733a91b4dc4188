import ProcessSupport
import BackgroundLedger
import BackgroundNotices
import BackgroundScheduling
import Foundation
import TransferMachines

/// An event that the agent receives. The agent's loop handles the events in their order.
package enum AgentEvent: Sendable {
    case transport(TransportEvent)
    case presenter(PresenterEvent)
    case conditions(DesktopConditions)
    /// The clock was set. Requests with wall-clock times are planned again, because the clock may have skipped a time.
    case timeChanged
    /// The time zone changed. Requests with wall-clock times are planned again.
    case zoneChanged
    /// The machine woke from sleep. Requests with wall-clock times are planned again, as after ``timeChanged``. The network may
    /// not be available yet.
    case resumed
    case sleepEvent(SleepEvent)
    /// The time of the alarm was reached. The alarm may have woken the machine.
    case alarmRang
    case alarmRefused(WakeRefusal)
    /// The process of a launch is running.
    case launchStarted(Int64, ProcessIdentity)
    /// No process could be started for a launch.
    case launchFailed(Int64, reason: String)
    case launchEnded(Int64, ProcessEnd)
    case processEnded(ProcessIdentity)
    /// A download continues at an offset, or all received bytes are on the disk. The agent writes the progress to the ledger for
    /// other processes.
    case attemptMoved(AttemptID)
    /// The attempt of a download ended. The received bytes are on the disk. If the downloaded file is complete, its digest was
    /// computed.
    case attemptFinished(AttemptID, WireEnd)
    /// The file for an upload cannot be opened.
    case attemptWithoutSource(AttemptID, FileTrouble)
    /// The agent stopped an attempt, and its partial file is on the disk.
    case attemptStopped(AttemptID)
    /// A file that an earlier agent had verified was checked again, with this result.
    case proofChecked(Int64, FileProof.Finding)
    /// The renaming of a complete file to its final name ended with this result. The result is `nil` if the file was not needed
    /// any more and was not renamed.
    case filePlaced(Int64, FileName.NamingResult?)
    /// The app's executable is missing.
    case appIsMissing(AppIsMissing)
    /// A file that the app specified changed, or another file in its folder changed.
    case filesChanged
    /// A folder that a request waits for changed. Its content is examined later.
    case folderChanging
    case folderExamined(WatchedFolder, FolderSignature.Finding)
    /// The process received SIGTERM or SIGINT.
    case stopRequested

    /// `true` for events about transferred bytes and ended attempts. After such an event, only transfers can have new work.
    var isOfTransport: Bool {
        switch self {
        case .transport, .attemptFinished: true
        case .presenter, .conditions, .timeChanged, .zoneChanged, .resumed, .sleepEvent, .alarmRang, .alarmRefused,
            .launchStarted, .launchFailed, .launchEnded, .processEnded, .attemptMoved, .attemptWithoutSource, .attemptStopped,
            .proofChecked, .filePlaced, .filesChanged, .folderChanging, .folderExamined, .appIsMissing, .stopRequested:
            false
        }
    }

    var isTimeChange: Bool {
        switch self {
        case .timeChanged, .zoneChanged, .resumed: true
        case .transport, .presenter, .conditions, .sleepEvent, .alarmRang, .alarmRefused, .launchStarted, .launchFailed,
            .launchEnded, .processEnded, .attemptMoved, .attemptFinished, .attemptWithoutSource, .attemptStopped, .proofChecked,
            .filePlaced, .filesChanged, .folderChanging, .folderExamined, .appIsMissing, .stopRequested:
            false
        }
    }
}

extension [AgentEvent] {
    /// The events that are kept while commits fail. Only the latest progress event of an attempt is kept.
    var withLatestProgressOnly: [AgentEvent] {
        var (progressed, moved): (Set<AttemptID>, Set<AttemptID>) = ([], [])
        let latest = reversed().filter { event in
            if case .transport(.progress(let attempt, _, _)) = event { return progressed.insert(attempt).inserted }
            if case .attemptMoved(let attempt) = event { return moved.insert(attempt).inserted }
            return true
        }
        return latest.reversed()
    }

    /// The events without the progress events of ended attempts.
    var withoutLateProgress: [AgentEvent] {
        let ended = Set(compactMap { if case .transport(.ended(let attempt, _)) = $0 { attempt } else { nil } })
        guard !ended.isEmpty else { return self }
        return filter { if case .transport(.progress(let attempt, _, _)) = $0 { !ended.contains(attempt) } else { true } }
    }
}
