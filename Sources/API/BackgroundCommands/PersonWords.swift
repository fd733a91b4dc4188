import BackgroundLedger
import BackgroundScheduling

// Words for the user, for values that `--json` prints with their API names.

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
        case .significantTimeChange: return "change of day or clock: \(name)"
        }
    }
}

extension LaunchRecord {
    /// The outcome in one word. A launch that only delivered the results of transfers has other words, because these results are
    /// not its own.
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

    /// `true` if an unmet condition is a planned wait and not a failure.
    var isPlanned: Bool { self != .systemWake }
}
