import BackgroundScheduling

// What `--json` calls by its name in the API, for whoever reads it at the desk.

extension LaunchKind {
    /// Before an identifier.
    var words: String {
        switch self {
        case .appRefresh: "refresh"
        case .processing: "processing"
        case .continuedProcessing: "processing that a person began,"
        case .urlSession: "ended transfers of"
        case .notificationResponse: "button pressed on"
        case .significantTimeChange: "changed day or clock:"
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
        case .notRunning: "not running"
        case .turn: "turn"
        case .room: "room"
        case .systemWake: "wakes the machine"
        }
    }
}
