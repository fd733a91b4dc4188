/// The messages of the agent's log. The text of a message never changes, because variable values are stored in fields.
package enum LogMessage: String, CaseIterable, Sendable {
    // Messages about the agent.
    case agentStarted = "agent-started"
    case agentStopping = "agent-stopping"
    case agentStopped = "agent-stopped"
    case agentLeaves = "agent-leaves"
    case agentStays = "agent-stays"
    case agentStoppedInTrouble = "agent-stopped-in-trouble"
    case agentStartsAfresh = "agent-starts-afresh"
    case ledgerNotSaved = "ledger-not-saved"
    case agentMakesWay = "agent-makes-way"
    case agentMadeWay = "agent-made-way"
    case ledgerIsNewer = "ledger-is-newer"
    case ledgerTroubled = "ledger-troubled"
    case ledgerRecovered = "ledger-recovered"
    case lockLost = "lock-lost"
    case changesUnheard = "changes-unheard"
    case changesHeard = "changes-heard"
    case partGaveWay = "part-gave-way"
    case folderNotSynced = "folder-not-synced"
    case hostWoke = "host-woke"
    case zoneChanged = "zone-changed"
    case requestReplanned = "request-replanned"
    case folderChanged = "folder-changed"
    case alarmMissing = "alarm-missing"
    case machineWoken = "machine-woken"
    case machineSleepsAgain = "machine-sleeps-again"
    case machineStaysAwake = "machine-stays-awake"
    case sleepRefused = "sleep-refused"
    // Messages about launches.
    case launchStarted = "launch-started"
    case launchAdopted = "launch-adopted"
    case launchFailed = "launch-failed"
    case launchWarned = "launch-warned"
    case launchKilled = "launch-killed"
    case launchEnded = "launch-ended"
    case workGoesOn = "work-goes-on"
    // Messages about transfers.
    case transferStopped = "transfer-stopped"
    case transferWaits = "transfer-waits"
    case transferEnded = "transfer-ended"
    // Messages about notifications.
    case notificationShown = "notification-shown"
    case notificationWaits = "notification-waits"
    case notificationsGathered = "notifications-gathered"
    case notificationPressed = "notification-pressed"
    case notificationUnreadable = "notification-unreadable"
    case notificationSilenced = "notification-silenced"
    case progressNotShown = "progress-not-shown"

    package var text: String {
        switch self {
        case .agentStarted: "agent started"
        case .agentStopping: "stopping"
        case .agentStopped: "agent stopped"
        case .agentLeaves: "the agent exits, and the user manager starts the agent again when work is due"
        case .agentStays: "the agent stays in memory, because the user manager would not start the agent again"
        case .agentStoppedInTrouble: "the agent stopped because of an error, and the next agent continues the work"
        case .agentStartsAfresh: "the agent starts with an empty ledger"
        case .ledgerNotSaved: "a file of the ledger was removed, and its contents are lost"
        case .agentMakesWay: "the agent exits, because another program replaced the agent's program"
        case .agentMadeWay: "the agent exited, because a newer agent took over the ledger"
        case .ledgerIsNewer: "a newer agent took over the ledger, so this agent exits when the running work has ended"
        case .ledgerTroubled: "the ledger cannot be used, and the agent tries again until the ledger can be used"
        case .ledgerRecovered: "the ledger can be written again"
        case .lockLost: "the agent's lock file was removed, and another agent holds the new lock file"
        case .changesUnheard: "the agent cannot watch the ledger for changes, so the agent reads the ledger at intervals"
        case .changesHeard: "the agent watches the ledger for changes again"
        case .partGaveWay:
            "the partial file of a download was removed to free space for the ledger, and the bytes will be fetched again"
        case .folderNotSynced: "the changes of a folder could not be synced to the disk"
        case .hostWoke: "the machine woke from sleep"
        case .zoneChanged: "the time zone changed"
        case .folderChanged: "a watched folder changed, so the request is due"
        case .requestReplanned: "the clock or the time zone changed, so the request was rescheduled"
        case .alarmMissing: "the agent cannot wake the machine, although a request requires this"
        case .machineWoken: "the agent woke the machine for work that is due"
        case .machineSleepsAgain: "the agent sends the machine back to sleep, because no user input was received"
        case .machineStaysAwake: "a user may be present, so the machine stays awake"
        case .sleepRefused: "the system refused to suspend the machine again"
        case .launchStarted: "launched"
        case .launchAdopted: "the agent took over a launch of the previous agent"
        case .launchFailed: "the app could not be launched"
        case .launchWarned: "the app was warned that its launch must end"
        case .launchKilled: "the launch did not end within the grace time and was killed"
        case .launchEnded: "launch ended"
        case .workGoesOn: "the work continues in the process that requested the work"
        case .transferStopped: "the transfer was stopped, because one of its conditions is not met any more"
        case .transferWaits: "transfer waits"
        case .transferEnded: "transfer ended"
        case .notificationShown: "notification shown"
        case .notificationWaits: "notification waits"
        case .notificationsGathered: "too many notifications are due, so a single summary is shown"
        case .notificationPressed: "notification pressed"
        case .notificationSilenced: "the notification was removed, because notifications of its kind were off for a day"
        case .notificationUnreadable: "a damaged notification was removed from the ledger"
        case .progressNotShown: "the progress of running work is not shown"
        }
    }

    /// The fields that follow the text of the message, in their order.
    package var fields: [LogField] {
        switch self {
        case .agentStarted: [.pid]
        case .agentLeaves: [.until]
        case .machineWoken: [.instant]
        case .agentStopping, .agentStopped, .agentMakesWay, .agentMadeWay, .ledgerIsNewer, .lockLost, .changesHeard, .hostWoke,
            .machineStaysAwake:
            []
        case .agentStays, .agentStoppedInTrouble, .agentStartsAfresh, .ledgerNotSaved, .ledgerTroubled, .folderNotSynced,
            .progressNotShown, .alarmMissing, .machineSleepsAgain, .sleepRefused:
            [.reason]
        case .ledgerRecovered: [.tries]
        case .changesUnheard: [.reason, .seconds]
        case .partGaveWay: [.file, .bytes]
        case .zoneChanged: [.zone]
        case .requestReplanned: [.identifier]
        case .folderChanged: [.identifier, .folder]
        case .launchStarted: [.launch, .kind, .identifier, .generation, .pid]
        case .launchAdopted: [.launch, .pid]
        case .launchFailed: [.launch, .identifier, .reason]
        case .launchWarned: [.launch, .identifier, .reason]
        case .launchKilled: [.launch, .identifier]
        case .launchEnded: [.launch, .kind, .identifier, .outcome]
        case .workGoesOn: [.identifier, .pid]
        case .transferStopped: [.transfer, .reason]
        case .transferWaits: [.transfer, .seconds, .reason]
        case .transferEnded: [.transfer, .kind, .identifier, .outcome, .host, .reason]
        case .notificationShown: [.notification]
        case .notificationWaits: [.notification, .reason]
        case .notificationsGathered: [.notification, .count]
        case .notificationPressed: [.notification, .action]
        case .notificationSilenced, .notificationUnreadable: [.notification]
        }
    }

    /// The priority of the message, as a number of syslog: 3 error, 4 warning, 5 notice, 6 information.
    package var priority: Int {
        switch self {
        case .agentStoppedInTrouble, .agentStartsAfresh, .ledgerNotSaved, .ledgerTroubled, .lockLost, .launchFailed: 3
        case .agentStays, .changesUnheard, .partGaveWay, .folderNotSynced, .launchKilled, .notificationWaits,
            .notificationUnreadable,
            .progressNotShown, .alarmMissing, .sleepRefused:
            4
        case .ledgerIsNewer, .agentMakesWay, .agentMadeWay, .ledgerRecovered, .changesHeard, .launchWarned, .transferStopped,
            .requestReplanned, .folderChanged, .notificationSilenced, .machineWoken, .machineSleepsAgain, .machineStaysAwake:
            5
        case .agentStarted, .agentStopping, .agentStopped, .agentLeaves, .hostWoke, .zoneChanged, .launchStarted, .launchAdopted,
            .launchEnded,
            .workGoesOn, .transferWaits, .transferEnded, .notificationShown, .notificationPressed,
            .notificationsGathered:
            6
        }
    }
}

/// The fields of log messages. Headers, queries, bodies and passwords have no fields, because they are never logged.
package enum LogField: String, CaseIterable, Sendable {
    case action, bytes, count, file, folder, generation, host, identifier, instant, kind, launch, notification, outcome, pid,
        reason,
        seconds, transfer, tries, until, zone

    package var meaning: String {
        switch self {
        case .action: "the key of the pressed button; `default` if the user pressed the notification itself"
        case .bytes: "the size of the removed file in bytes"
        case .count: "the number of notifications in the summary"
        case .file: "the name of the removed file, without the folder"
        case .folder: "the path of the folder"
        case .generation: "1 for the first launch of a request; each retry has a higher number"
        case .host: "the server: scheme, name and port"
        case .identifier: "the identifier of the request or session"
        case .instant: "the time that was set for the alarm"
        case .kind: "the kind of the launch or transfer"
        case .launch: "the number of the launch in the history"
        case .notification: "the identifier of the notification"
        case .outcome: "the outcome of the launch or transfer, as in the history"
        case .pid: "the process id (PID) of the agent or of the app"
        case .reason: "the reason in words; empty if there was no error"
        case .seconds: "the time in seconds until the next attempt or the next read"
        case .transfer: "the number of the transfer, as the command `transfers` shows it"
        case .tries: "the number of failed attempts to use the ledger"
        case .until: "the time at which the next work is due; empty if this time is not known"
        case .zone: "the identifier of the time zone"
        }
    }
}

/// A message with its fields.
package struct LogEntry: Sendable, Equatable {
    package let message: LogMessage
    package let values: [(field: LogField, value: String)]

    /// - Parameter values: the values of the message's fields, in the order of ``LogMessage/fields``.
    package init(_ message: LogMessage, _ values: [(LogField, any CustomStringConvertible)] = []) {
        self.message = message
        self.values = values.map { ($0, "\($1)") }
        assert(message.fields == values.map(\.0), "\(message) has the fields \(message.fields)")
    }

    package static func == (one: LogEntry, other: LogEntry) -> Bool {
        one.message == other.message && one.values.elementsEqual(other.values) { $0 == $1 }
    }

    /// The entry as a single line, for a file or a terminal.
    package var line: String {
        ([message.text] + values.map { "\($0.field.rawValue)=\(Self.word($0.value))" }).joined(separator: " ")
    }

    /// Returns the value on a single line, in quotes if it contains special characters. The quotes are necessary because some
    /// values come from other programs, for example from a server.
    private static func word(_ value: String) -> String {
        let isPlain =
            !value.isEmpty
            && value.unicodeScalars.allSatisfy { $0.properties.isAlphabetic || "0123456789-._:/+".unicodeScalars.contains($0) }
        if isPlain { return value }
        let escaped = value.unicodeScalars.map { scalar -> String in
            switch scalar {
            case "\"", "\\": "\\\(scalar)"
            case "\n": "\\n"
            default:
                scalar.value < 0x20 || (0x7F...0x9F).contains(scalar.value)
                    ? "\\u{\(String(scalar.value, radix: 16))}" : "\(scalar)"
            }
        }
        return "\"" + escaped.joined() + "\""
    }
}
