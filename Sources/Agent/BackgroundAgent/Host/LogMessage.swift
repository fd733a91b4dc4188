/// Everything the agent writes down of what it does. The text of each is constant; what differs from one time to the next stands in fields.
package enum LogMessage: String, CaseIterable, Sendable {
    // The agent.
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
    case alarmMissing = "alarm-missing"
    case machineWoken = "machine-woken"
    case machineSleepsAgain = "machine-sleeps-again"
    case machineStaysAwake = "machine-stays-awake"
    case sleepRefused = "sleep-refused"
    // Launches.
    case launchStarted = "launch-started"
    case launchAdopted = "launch-adopted"
    case launchFailed = "launch-failed"
    case launchWarned = "launch-warned"
    case launchKilled = "launch-killed"
    case launchEnded = "launch-ended"
    case workGoesOn = "work-goes-on"
    // Transfers.
    case transferStopped = "transfer-stopped"
    case transferWaits = "transfer-waits"
    case transferEnded = "transfer-ended"
    // Notifications.
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
        case .agentLeaves: "leaves until something is due: the user manager starts it again"
        case .agentStays: "stays in memory: the user manager would not start it again"
        case .agentStoppedInTrouble: "stopped in trouble: what is left is the next agent's"
        case .agentStartsAfresh: "starting afresh"
        case .ledgerNotSaved: "a file of the ledger was removed, and what was in it is lost"
        case .agentMakesWay: "makes way for the program that lies in its place now"
        case .agentMadeWay: "made way for a newer version"
        case .ledgerIsNewer: "a newer version has taken over the ledger: leaving when what runs has ended"
        case .ledgerTroubled: "trouble with the ledger: tried again until it works"
        case .ledgerRecovered: "the ledger can be written again"
        case .lockLost: "the lock was taken away, and another agent has it now"
        case .changesUnheard: "cannot hear of changes: looks by itself until it can"
        case .changesHeard: "hears of changes again"
        case .partGaveWay: "a part of a download gave way to the ledger: its bytes will be fetched again"
        case .folderNotSynced: "a folder could not be synced"
        case .hostWoke: "the host woke"
        case .zoneChanged: "the time zone changed"
        case .requestReplanned: "the clock or the zone changed: planned anew"
        case .alarmMissing: "cannot wake the machine for what asks for it"
        case .machineWoken: "woke the machine for what is due"
        case .machineSleepsAgain: "nobody came: sends the machine back to sleep"
        case .machineStaysAwake: "somebody may be there: the machine stays awake"
        case .sleepRefused: "the machine was not let sleep again"
        case .launchStarted: "launched"
        case .launchAdopted: "took over a launch of the agent before"
        case .launchFailed: "could not be launched"
        case .launchWarned: "warned that its time is over"
        case .launchKilled: "did not return within the grace time: killed"
        case .launchEnded: "launch ended"
        case .workGoesOn: "goes on in the process that asked for it"
        case .transferStopped: "transfer stopped: what it needs is gone"
        case .transferWaits: "transfer waits"
        case .transferEnded: "transfer ended"
        case .notificationShown: "notification shown"
        case .notificationWaits: "notification waits"
        case .notificationsGathered: "more notifications than a person reads: one summary tells of them"
        case .notificationPressed: "notification pressed"
        case .notificationSilenced: "its kind has been switched off for a day: it is not kept any longer"
        case .notificationUnreadable: "nobody can read what the ledger has of a notification: removed"
        case .progressNotShown: "progress is not shown"
        }
    }

    /// What stands beside the text, in this order.
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

    /// As syslog counts: 3 an error, 4 a warning, 5 worth a look, 6 information.
    package var priority: Int {
        switch self {
        case .agentStoppedInTrouble, .agentStartsAfresh, .ledgerNotSaved, .ledgerTroubled, .lockLost, .launchFailed: 3
        case .agentStays, .changesUnheard, .partGaveWay, .folderNotSynced, .launchKilled, .notificationWaits,
            .notificationUnreadable,
            .progressNotShown, .alarmMissing, .sleepRefused:
            4
        case .ledgerIsNewer, .agentMakesWay, .agentMadeWay, .ledgerRecovered, .changesHeard, .launchWarned, .transferStopped,
            .requestReplanned, .notificationSilenced, .machineWoken, .machineSleepsAgain, .machineStaysAwake:
            5
        case .agentStarted, .agentStopping, .agentStopped, .agentLeaves, .hostWoke, .zoneChanged, .launchStarted, .launchAdopted,
            .launchEnded,
            .workGoesOn, .transferWaits, .transferEnded, .notificationShown, .notificationPressed,
            .notificationsGathered:
            6
        }
    }
}

/// What is said beside a message. Never a header, a query, a body or a password: none has a field.
package enum LogField: String, CaseIterable, Sendable {
    case action, bytes, count, file, generation, host, identifier, instant, kind, launch, notification, outcome, pid, reason,
        seconds, transfer, tries, until, zone

    package var meaning: String {
        switch self {
        case .action: "the button's key, `default` for the notification itself"
        case .bytes: "how many"
        case .count: "how many"
        case .file: "a name without its folder"
        case .generation: "which launch of the same request it is, made up for ones counted"
        case .host: "a server: scheme, name and port"
        case .identifier: "of the request or session"
        case .instant: "the moment that an alarm was set for"
        case .kind: "of launch or transfer"
        case .launch: "its number in the history"
        case .notification: "its identifier"
        case .outcome: "as the history has it"
        case .pid: "the number of a process"
        case .reason: "in words; empty: there was no trouble"
        case .seconds: "a span"
        case .transfer: "its number, as `transfers` lists it"
        case .tries: "how many there were"
        case .until: "a moment; empty: nothing is due by time alone"
        case .zone: "an identifier of the time zone database"
        }
    }
}

/// A message with its fields.
package struct LogEntry: Sendable, Equatable {
    package let message: LogMessage
    package let values: [(field: LogField, value: String)]

    /// - Parameter values: of the message's fields, in their order.
    package init(_ message: LogMessage, _ values: [(LogField, any CustomStringConvertible)] = []) {
        self.message = message
        self.values = values.map { ($0, "\($1)") }
        assert(message.fields == values.map(\.0), "\(message) has the fields \(message.fields)")
    }

    package static func == (one: LogEntry, other: LogEntry) -> Bool {
        one.message == other.message && one.values.elementsEqual(other.values) { $0 == $1 }
    }

    /// One line, for a file or a terminal.
    package var line: String {
        ([message.text] + values.map { "\($0.field.rawValue)=\(Self.word($0.value))" }).joined(separator: " ")
    }

    /// In quotes where it would end too early, and never more than a line: some of it comes from outside.
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
