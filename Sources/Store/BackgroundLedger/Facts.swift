import BackgroundNotices
import BackgroundScheduling
import Foundation
import GRDB
import ProcessSupport
import Synchronization
import TransferMachines

/// The executable, the arguments and the environment variables with which the agent launches an app. The app records these values
/// each time a process of the app runs.
package struct AppRecord: Codable, Sendable, Equatable {
    /// The absolute path of the executable.
    package var executable: String
    /// The first arguments of the executable. The agent adds more arguments after these arguments. The list is empty for most
    /// apps.
    package var arguments: [String]
    package var version: String
    /// The name of the app that the user sees, for example as the sender of notifications.
    package var displayName: String
    /// The names of additional environment variables that launches of the app inherit from the agent. A `*` at the end of a name
    /// matches any characters.
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
    /// The time between the warning that a launch must end and the kill of the launch. After an await is cancelled, a task can
    /// continue the transfer of this await within the same time.
    package var grace: Double = 5
    /// The maximum time that a launch continues after the handlers returned. The launch continues as long as the agent is sending
    /// or receiving bytes of a transfer that the launch began.
    package var continuation: Double = 30
    /// The first delay after a launch that crashed or was killed. The delay doubles with each failure.
    package var backoffBase: Double = 5
    /// The time between two launches that are due at the same time.
    package var launchSpacing: Double = 1
    /// The first delay of a request that a launch submits without a begin date. The delay doubles with each such launch. The
    /// value 0 means no delay.
    package var discretion: Double = 300
    /// The time without progress after which a continued-processing task is ended.
    package var progressPatience: Double = 60
    package var notificationsEnabled = true
    /// The absolute paths of files. If one of these files changes, launches that ended without a result are retried immediately.
    package var watchedFiles: [String]?
    /// The quiet hours, for example "22:00-07:00". The text is empty if no quiet hours are set.
    package var quietHours = ""
    /// The lowest interruption level of notifications that are also shown in quiet hours. If the value is above 3, no
    /// notification is shown in quiet hours.
    package var loudLevel = 3
    /// The categories whose notifications are stored but not shown.
    package var silencedCategories: [String]?

    package init() {}

    /// Decodes the settings. If an earlier version did not write a setting, the setting has its default value.
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

/// The environment of the user's desktop session. Commands record these variables, because an agent that was started from cron or
/// ssh does not have them.
package struct SessionEnvironment: Codable, Sendable, Equatable {
    package static let names = [
        "DBUS_SESSION_BUS_ADDRESS", "DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "XDG_RUNTIME_DIR", "XDG_CURRENT_DESKTOP",
    ]
    package var variables: [String: String]

    package init(variables: [String: String]) { self.variables = variables }

    /// The variables of the session environment that are set in this process.
    package static var current: SessionEnvironment {
        let environment = ThisProcess.environment
        return SessionEnvironment(variables: environment.filter { names.contains($0.key) })
    }
}

/// The values that the agent stores in the ledger about its process.
package struct AgentRecord: Codable, Sendable, Equatable {
    package var pid: Int32
    package var version: String
    package var startedAt: Date
    /// The start time (``ProcessIdentity/start``) of the process with the number `pid`.
    package var processStart: Int64?

    /// The identity of the agent's process, or `nil` if an earlier version recorded only the process number.
    package var process: ProcessIdentity? { processStart.map { ProcessIdentity(pid: pid, start: $0) } }

    package init(pid: Int32, version: String, startedAt: Date, processStart: Int64? = nil) {
        self.processStart = processStart
        self.pid = pid
        self.version = version
        self.startedAt = startedAt
    }
}

/// The conditions that the agent last observed, and the time of the last change of each condition.
package struct ObservedConditions: Codable, Sendable, Equatable {
    package var conditions: DesktopConditions
    package var networkSince: Date
    package var powerSince: Date
    /// The time at which power saving was last turned on or off.
    package var savingSince: Date?
    /// The time of the first observation. The first observation is not recorded as a change.
    package var firstLookAt: Date?
    /// The time at which the machine last woke from sleep.
    package var resumedAt: Date?

    package init(conditions: DesktopConditions, networkSince: Date, powerSince: Date) {
        self.conditions = conditions
        self.networkSince = networkSince
        self.powerSince = powerSince
    }
}

/// The last known state of the alarm, which wakes the machine from sleep.
package struct AlarmReport: Codable, Sendable, Equatable {
    /// The time of the alarm, or `nil` if no alarm is set.
    package var alarm: Date?
    /// The reason why no alarm is set.
    package var obstacle: WakeObstacle?
    /// The time since which the state has not changed.
    package var since: Date

    package init(alarm: Date?, obstacle: WakeObstacle?, since: Date) {
        (self.alarm, self.obstacle, self.since) = (alarm, obstacle, since)
    }
}

/// The name of a fact. A fact is a single value that the ledger stores together with a name.
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
    /// The record of an agent that exited and will be started again. The fact is absent if the agent is running or was killed.
    package static var absence: Self { Self("absence") }
}
extension FactName where Value == ObservedConditions {
    package static var conditions: Self { Self("conditions") }
}
extension FactName where Value == AlarmReport {
    /// The state of the alarm. The fact is absent if no request needs to wake the machine, or if no agent has examined the alarm
    /// yet.
    package static var alarm: Self { Self("alarm") }
}
extension FactName where Value == SignificantTime {
    /// The day and the time zone that the app was last notified of. The fact is absent if the app has no handler for time
    /// changes.
    package static var significantTime: Self { Self("significantTime") }
    /// The day and the time zone that a running launch notifies the app of.
    package static var significantTimeBeingTold: Self { Self("significantTimeBeingTold") }
}
extension FactName where Value == Int {
    /// The last task identifier that was reserved. No identifier is reserved twice.
    package static var lastTaskIdentifier: Self { Self("lastTaskIdentifier") }
    /// The number on the app's icon.
    package static var badge: Self { Self("badge") }
    /// The badge number that the agent last sent to the docks of the desktop.
    package static var badgeTold: Self { Self("badgeTold") }
}
extension FactName where Value == Date {
    /// The last time at which the user retried or resumed transfers.
    package static var retriedAt: Self { Self("retriedAt") }
    /// The time of the last change of the app's files (``AgentSettings/watchedFiles``).
    package static var appChangedAt: Self { Self("appChangedAt") }
    /// The time since which do-not-disturb is on.
    package static var doNotDisturbSince: Self { Self("doNotDisturbSince") }
    /// The last alarm time for which the machine was woken. The machine is not woken a second time for this alarm time.
    package static var servedWake: Self { Self("servedWake") }
    /// The approximate time when an agent last read this ledger.
    package static var lookedAt: Self { Self("lookedAt") }
}
extension FactName where Value == [Int64] {
    /// The running launches in which the app began background transfers.
    package static var launchesWithTransfers: Self { Self("launchesWithTransfers") }
}
extension FactName where Value == Bool {
    /// `true` if the notification server advertises buttons and is not one of ``serversWithoutButtons``. The fact is absent if
    /// the server was not queried yet, or has exited.
    package static var serverHasButtons: Self { Self("serverHasButtons") }
}
extension FactName where Value == ServerKnowledge {
    /// The known capabilities of the server of an upload. The name of the fact contains the address and the bucket. Each bucket
    /// has a separate region, and a proxy can have different limits for different paths.
    package static func server(of transfer: TransferRecord) -> Self {
        Self("server:" + PublicAddress.of(transfer.url) + (transfer.upload?.s3?.bucket.map { " " + $0 } ?? ""))
    }
}
extension FactName where Value == [String] {
    /// The notifications that the user did not see on the screen, and that a command has already listed in a terminal.
    package static var noticesListed: Self { Self("noticesListed") }
    /// The labels of notification servers that advertise buttons, but in whose test notification (`notify --test`) the user found
    /// no button.
    package static var serversWithoutButtons: Self { Self("serversWithoutButtons") }
}
extension FactName where Value == String {
    /// The time zone in which the next occurrence of a repeating request was last planned. The fact is absent if an earlier
    /// version planned the occurrence.
    package static func zone(ofRequest identifier: String) -> Self { Self("zone:" + identifier) }
    /// The `FileIdentity` of the spool folder, which contains the agent's copies of the files to upload. The fact is absent if
    /// the folder is not known.
    package static var spool: Self { Self("spool") }
    /// The notification server that assigned the stored notification numbers. The value contains the address of the bus, and the
    /// server's name on this bus.
    package static var notificationServer: Self { Self("notificationServer") }
    /// The reason why the notification server cannot be reached. The fact is absent if the server can be reached.
    package static var presenterTrouble: Self { Self("presenterTrouble") }
    /// The reason why the agent would not be started again after an exit. The fact is absent if the agent would be started again,
    /// or has not tried to exit.
    package static var activationTrouble: Self { Self("activationTrouble") }
}

/// A cache of decoded facts. If the text of a fact has not changed (the usual case), the fact is not decoded again.
private final class DecodedFacts: Sendable {
    static let shared = DecodedFacts()
    private let known = Mutex<[String: (text: String, value: any Sendable)]>([:])

    func value<Value: Decodable & Sendable>(_ name: String, _ text: String) -> Value? {
        if let (known, value) = known.withLock({ $0[name] }), known == text, let value = value as? Value { return value }
        guard let value = try? JSONDecoder().decode(Value.self, from: Data(text.utf8)) else { return nil }
        // The cache needs a limit, because the capabilities of each server are a separate fact.
        known.withLock { if $0.count < 64 || $0[name] != nil { $0[name] = (text, value) } }
        return value
    }
}

extension LedgerTransaction {
    /// Returns a fact. If the value cannot be decoded, returns `nil`, because the process that recorded the fact will record it
    /// again.
    package func fact<Value>(_ name: FactName<Value>) throws -> Value? {
        guard
            let text = try String.fetchOne(
                database.cachedStatement(sql: "SELECT value FROM fact WHERE name = ?"), arguments: [name.name])
        else { return nil }
        return DecodedFacts.shared.value(name.name, text)
    }

    /// Stores whether the user found the button in the test notification that the current notification server showed.
    package func recordButtons(areDrawn: Bool, byServer label: String) throws {
        let others = try (fact(.serversWithoutButtons) ?? []).filter { $0 != label }
        let servers = areDrawn ? others : Array(others.suffix(Self.mostServersWithoutButtons - 1)) + [label]
        try setFact(.serversWithoutButtons, servers.isEmpty ? nil : servers)
        try setFact(.serverHasButtons, areDrawn)
    }

    private static let mostServersWithoutButtons = 16

    /// Stores a fact, or removes the fact if the value is `nil`. An unchanged value is not written, so that no change
    /// notification is sent.
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
