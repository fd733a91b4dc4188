import BackgroundLedger
import BackgroundScheduling

// The words that commands print for the user. `--json` prints the names from the API instead.

extension LaunchKind {
    /// Returns the words for a launch with an identifier, for example "daily check (StormyNoon)" or "results of downloads
    /// (StormyDownloads)".
    func words(_ identifier: String) -> String {
        let name = BackgroundCommands.name(of: identifier)
        switch self {
        case .appRefresh: return BackgroundCommands.names[identifier] == nil ? "refresh \(name)" : name
        case .processing: return BackgroundCommands.names[identifier] == nil ? "processing \(name)" : name
        case .continuedProcessing: return "processing that you started, \(name)"
        case .urlSession: return "results of \(name)"
        case .notificationResponse: return "button pressed on \(name)"
        case .significantTimeChange: return "change of the date or the clock: \(name)"
        }
    }
}

extension LaunchRecord {
    /// The outcome of a launch in one word. For a launch that only passed results of transfers to the app, the word is
    /// "delivered" and not "completed".
    var outcomeWords: String {
        switch (kind, outcome) {
        case (_, nil): "running"
        case (.urlSession, .completed?): "delivered"
        case (_, let outcome?): outcome.rawValue
        }
    }
}

extension ConditionVerdict.Name {
    var words: String {
        switch self {
        case .earliestBeginDate: "time"
        case .networkConnectivity: "network"
        case .externalPower: "external power"
        case .lowPowerMode: "power saving"
        case .networkAfterSleep: "network after sleep"
        case .backoff: "pause"
        case .notRunning: "launch"
        case .turn: "start"
        case .room: "limit"
        case .systemWake: "waking the machine"
        }
    }

    /// `true` if it is normal that a request waits for this condition. `false` if the user should solve a problem.
    var isPlanned: Bool { self != .systemWake }
}
