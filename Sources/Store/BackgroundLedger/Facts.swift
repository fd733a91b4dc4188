import BackgroundNotices
import BackgroundScheduling
import Foundation
import GRDB
import ProcessSupport
import Synchronization
import TransferMachines

/// The way in which the agent launches an app. The app itself records it whenever it runs.
package struct AppRecord: Codable, Sendable, Equatable {
    /// Absolute path of the executable.
    package var executable: String
    /// The arguments before the arguments of the agent; empty for most apps.
    package var arguments: [String]
    package var version: String
    /// The user-visible name of the app, shown as the sender of its notifications.
    package var displayName: String
    /// Variables that launches of the app inherit from the agent, in addition to the variables that every launch inherits. A `*` at the end
    /// matches any remaining characters.
    package var variables: [String]?

    package init(
        executable: String, arguments: [String], version: String, displayName: String, variables: [String]? = nil
    ) {
        self.executable = executable
        self.variables = variables
        self.arguments = arguments
        self.version = version
        self.displayName = displayName
    }
}

/// The settings that an app chooses for its agent. All times are in seconds.
package struct AgentSettings: Codable, Sendable, Equatable {
    package var refreshBudget: Double = 30
    package var processingBudget: Double = 600
    /// The time between the warning and the kill. A cancelled transfer stays adoptable for the same time.
    package var grace: Double = 5
    /// The maximum time that a launch continues after its handlers returned, while an attempt at a transfer that it began is under way.
    package var continuation: Double = 30
    /// The first delay after a launch that crashed or was killed. The delay doubles with each failure.
    package var backoffBase: Double = 5
    /// The time between two launches that are due at the same time.
    package var launchSpacing: Double = 1
    /// The delay of a request without a date that a launch submits. The delay doubles with each launch; 0 means no delay.
    package var discretion: Double = 300
    /// The time without progress after which a continued-processing task is ended.
    package var progressPatience: Double = 60
    package var notificationsEnabled = true
    /// Absolute paths. If one of these files changes, launches that failed without a result are tried again at once.
    package var watchedFiles: [String]?
    /// The quiet hours, for example "22:00-07:00"; empty if there are none.
    package var quietHours = ""
    /// The lowest interruption level whose notifications are also shown in quiet hours. Over 3 means that no notification is shown.
    package var loudLevel = 3
    /// Categories whose notifications are stored but not shown.
    package var silencedCategories: [String]?

    package init() {}

    /// Decodes the settings. Settings that an earlier version did not write keep their defaults.
    package init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        func take<Value: Decodable>(_ key: CodingKeys, _ setting: inout Value) throws {
            if let value = try values.decodeIfPresent(Value.self, forKey: key) { setting = value }
        }
        try take(.refreshBudget, &refreshBudget)
        try take(.processingBudget, &processingBudget)
        try take(.grace, &grace)
        try take(.continuation, &continuation)
        try take(.backoffBase, &backoffBase)
        try take(.launchSpacing, &launchSpacing)
        try take(.discretion, &discretion)
        try take(.progressPatience, &progressPatience)
        try take(.notificationsEnabled, &notificationsEnabled)
        try take(.watchedFiles, &watchedFiles)
        try take(.quietHours, &quietHours)
        try take(.loudLevel, &loudLevel)
        try take(.silencedCategories, &silencedCategories)
    }
}

extension AgentSettings {
    package var noticeRules: NoticeRules {
        var rules = NoticeRules()
        (rules.isEnabled, rules.quietHours) = (notificationsEnabled, QuietHours(parsing: quietHours))
        rules.loudLevel = loudLevel > 3 ? nil : loudLevel
        rules.silencedCategories = Set(silencedCategories ?? [])
        return rules
    }
}

/// The environment of the user's desktop session. Commands record it, because an agent that is started from cron or ssh does not have it.
package struct SessionEnvironment: Codable, Sendable, Equatable {
    package static let names = [
        "DBUS_SESSION_BUS_ADDRESS", "DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "XDG_RUNTIME_DIR", "XDG_CURRENT_DESKTOP",
    ]
    package var variables: [String: String]

    package init(variables: [String: String]) { self.variables = variables }

    /// The part of the session environment that this process has.
    package static var current: SessionEnvironment {
        let environment = ThisProcess.environment
        return SessionEnvironment(variables: environment.filter { names.contains($0.key) })
    }
}

/// The agent's own entry in the ledger.
package struct AgentRecord: Codable, Sendable, Equatable {
    package var pid: Int32
    package var version: String
    package var startedAt: Date
    /// The ``ProcessIdentity/start`` of the process with the number `pid`.
    package var processStart: Int64?

    /// `nil` if an earlier version recorded the number alone.
    package var process: ProcessIdentity? { processStart.map { ProcessIdentity(pid: pid, start: $0) } }

    package init(pid: Int32, version: String, startedAt: Date, processStart: Int64? = nil) {
        self.processStart = processStart
        self.pid = pid
        self.version = version
        self.startedAt = startedAt
    }
}

/// The conditions as the agent last observed them, and since when each one has its value.
package struct ObservedConditions: Codable, Sendable, Equatable {
    package var conditions: DesktopConditions
    package var networkSince: Date
    package var powerSince: Date
    /// The time since which power saving has been on, or off.
    package var savingSince: Date?
    /// The time of the first observation. The values found then do not count as a change.
    package var firstLookAt: Date?
    /// When the host last woke from sleep.
    package var resumedAt: Date?

    package init(conditions: DesktopConditions, networkSince: Date, powerSince: Date) {
        self.conditions = conditions
        self.networkSince = networkSince
        self.powerSince = powerSince
    }
}

/// The last known state of the alarm that wakes the machine.
package struct AlarmReport: Codable, Sendable, Equatable {
    /// The time of the alarm that is set; `nil` if no alarm is set.
    package var alarm: Date?
    /// The reason why no alarm is set.
    package var obstacle: WakeObstacle?
    /// The time since which the state has not changed.
    package var since: Date

    package init(alarm: Date?, obstacle: WakeObstacle?, since: Date) {
        (self.alarm, self.obstacle, self.since) = (alarm, obstacle, since)
    }
}

/// The name of a single value in the ledger.
package struct FactName<Value: Codable & Sendable & Equatable>: Sendable {
    let name: String

    init(_ name: String) { self.name = name }
}

extension FactName where Value == AppRecord {
    package static var app: Self { Self("app") }
}
extension FactName where Value == AgentSettings {
    package static var settings: Self { Self("settings") }
}
extension FactName where Value == SessionEnvironment {
    package static var sessionEnvironment: Self { Self("sessionEnvironment") }
}
extension FactName where Value == AgentRecord {
    package static var agent: Self { Self("agent") }
}
extension FactName where Value == AgentAbsence {
    /// Recorded when the agent exited and will be started again. Absent if the agent is running, or was killed.
    package static var absence: Self { Self("absence") }
}
extension FactName where Value == ObservedConditions {
    package static var conditions: Self { Self("conditions") }
}
extension FactName where Value == AlarmReport {
    /// Absent if no request needs to wake the machine, or no agent has checked yet.
    package static var alarm: Self { Self("alarm") }
}
extension FactName where Value == SignificantTime {
    /// The day and time zone that the app last received; absent if the app does not want to be notified.
    package static var significantTime: Self { Self("significantTime") }
    /// The day and time zone for which a launch is running.
    package static var significantTimeBeingTold: Self { Self("significantTimeBeingTold") }
}
extension FactName where Value == Int {
    /// The last task identifier, so that a session never gets an identifier twice.
    package static var lastTaskIdentifier: Self { Self("lastTaskIdentifier") }
    /// The number on the app's icon.
    package static var badge: Self { Self("badge") }
    /// The number that docks have received.
    package static var badgeTold: Self { Self("badgeTold") }
}
extension FactName where Value == Date {
    /// The last time when the user wanted transfers to be tried at once.
    package static var retriedAt: Self { Self("retriedAt") }
    /// When the app's files changed last (``AgentSettings/watchedFiles``).
    package static var appChangedAt: Self { Self("appChangedAt") }
    /// The time since which the user has do-not-disturb switched on.
    package static var doNotDisturbSince: Self { Self("doNotDisturbSince") }
    /// The last time for which the machine was woken. The machine is never woken for it again.
    package static var servedWake: Self { Self("servedWake") }
    /// The approximate time when an agent last read this ledger.
    package static var lookedAt: Self { Self("lookedAt") }
}
extension FactName where Value == [Int64] {
    /// Running launches whose apps began background transfers.
    package static var launchesWithTransfers: Self { Self("launchesWithTransfers") }
}
extension FactName where Value == Bool {
    /// `true` if the notification server advertises buttons and is not one of ``serversWithoutButtons``. Absent if the server was not
    /// asked, or is gone.
    package static var serverHasButtons: Self { Self("serverHasButtons") }
}
extension FactName where Value == ServerKnowledge {
    /// The known capabilities of the server of an upload. The key is the address and the bucket, because each bucket has its own region,
    /// and a proxy can have different limits for different paths.
    package static func server(of transfer: TransferRecord) -> Self {
        Self("server:" + PublicAddress.of(transfer.url) + (transfer.upload?.s3?.bucket.map { " " + $0 } ?? ""))
    }
}
extension FactName where Value == [String] {
    /// Notifications that were not seen on screen, but that the user has read in a terminal.
    package static var noticesListed: Self { Self("noticesListed") }
    /// Labels of notification servers that advertise buttons, and whose button a user did not find in `notify --test`.
    package static var serversWithoutButtons: Self { Self("serversWithoutButtons") }
}
extension FactName where Value == String {
    /// The time zone in which the occurrence of a request's rule was planned last. Absent if an earlier version planned it.
    package static func zone(ofRequest identifier: String) -> Self { Self("zone:" + identifier) }
    /// `FileIdentity` of the spool folder that the queued copies were put into. Absent if the folder is not known.
    package static var spool: Self { Self("spool") }
    /// The notification server whose numbers are stored in the ledger: the bus and the name of the server on it.
    package static var notificationServer: Self { Self("notificationServer") }
    /// The reason why the notification server cannot be reached; absent if it can.
    package static var presenterTrouble: Self { Self("presenterTrouble") }
    /// The reason why the agent would not be started again after it exited. Absent if it would be started, or has not tried to exit.
    package static var activationTrouble: Self { Self("activationTrouble") }
}

/// The facts as they were read last. A text that has not changed, which is the usual case, is not decoded again.
private final class DecodedFacts: Sendable {
    static let shared = DecodedFacts()
    private let known = Mutex<[String: (text: String, value: any Sendable)]>([:])

    func value<Value: Decodable & Sendable>(_ name: String, _ text: String) -> Value? {
        if let (known, value) = known.withLock({ $0[name] }), known == text, let value = value as? Value { return value }
        guard let value = try? JSONDecoder().decode(Value.self, from: Data(text.utf8)) else { return nil }
        // Server capabilities are many facts, so their number needs a limit.
        known.withLock { if $0.count < 64 || $0[name] != nil { $0[name] = (text, value) } }
        return value
    }
}

extension LedgerTransaction {
    /// Returns a fact. A value that cannot be read counts as absent, because every fact is recorded again by its source.
    package func fact<Value>(_ name: FactName<Value>) throws -> Value? {
        guard
            let text = try String.fetchOne(
                database.cachedStatement(sql: "SELECT value FROM fact WHERE name = ?"), arguments: [name.name])
        else { return nil }
        return DecodedFacts.shared.value(name.name, text)
    }

    /// Stores whether the user found the button of the notification server that runs now.
    package func recordButtons(areDrawn: Bool, byServer label: String) throws {
        let others = try (fact(.serversWithoutButtons) ?? []).filter { $0 != label }
        let servers = areDrawn ? others : Array(others.suffix(Self.mostServersWithoutButtons - 1)) + [label]
        try setFact(.serversWithoutButtons, servers.isEmpty ? nil : servers)
        try setFact(.serverHasButtons, areDrawn)
    }

    private static let mostServersWithoutButtons = 16

    /// Stores a fact. Writes only a changed value, so that a repetition sends no change notification.
    package func setFact<Value>(_ name: FactName<Value>, _ value: Value?) throws {
        guard try fact(name) != value else { return }
        guard let value else {
            return try database.run(sql: "DELETE FROM fact WHERE name = ?", arguments: [name.name])
        }
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        let text = String(decoding: try encoder.encode(value), as: UTF8.self)
        try database.run(
            sql: "INSERT INTO fact (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            arguments: [name.name, text])
    }
}
