import BackgroundNotices
import BackgroundScheduling
import Foundation
import GRDB
import ProcessSupport
import Synchronization
import TransferMachines

/// How the agent launches an app, recorded by the app itself whenever it runs.
package struct AppRecord: Codable, Sendable, Equatable {
    /// Absolute path of the executable.
    package var executable: String
    /// Arguments before any of ours; empty for most apps.
    package var arguments: [String]
    package var version: String
    /// What a person calls the app; shown as the sender of its notifications.
    package var displayName: String
    /// Variables that its launches inherit from the agent, beside those that every launch inherits. A `*` at the end matches the rest.
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

/// What an app asks of its agent, in one place. Times in seconds.
package struct AgentSettings: Codable, Sendable, Equatable {
    package var refreshBudget: Double = 30
    package var processingBudget: Double = 600
    /// Between the warning and the kill; also how long a cancelled transfer stays adoptable.
    package var grace: Double = 5
    /// The maximum time that a launch continues after its handlers returned, while an attempt at a transfer that it began is under way.
    package var continuation: Double = 30
    /// First delay after a launch that crashed or was killed; doubles with each.
    package var backoffBase: Double = 5
    /// Between two launches that are due at once.
    package var launchSpacing: Double = 1
    /// Before a request without a date that a launch submits; doubles with each. 0: none.
    package var discretion: Double = 300
    /// Without progress a continued-processing task is ended after so long.
    package var progressPatience: Double = 60
    package var notificationsEnabled = true
    /// Absolute paths: when one of them changes, what failed without a result is tried again at once.
    package var watchedFiles: [String]?
    /// "22:00-07:00", or empty.
    package var quietHours = ""
    /// The interruption level from which on a notification is shown in quiet hours too; over 3: none is.
    package var loudLevel = 3
    /// Categories whose notifications are kept and not shown.
    package var silencedCategories: [String]?

    package init() {}

    /// Written by an earlier version it lacks what was added since.
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

/// Where the person's session can be reached: recorded by verbs, because an agent started from cron or ssh has neither.
package struct SessionEnvironment: Codable, Sendable, Equatable {
    package static let names = [
        "DBUS_SESSION_BUS_ADDRESS", "DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "XDG_RUNTIME_DIR", "XDG_CURRENT_DESKTOP",
    ]
    package var variables: [String: String]

    package init(variables: [String: String]) { self.variables = variables }

    /// What of it this process knows.
    package static var current: SessionEnvironment {
        let environment = ThisProcess.environment
        return SessionEnvironment(variables: environment.filter { names.contains($0.key) })
    }
}

/// What the agent says of itself.
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

/// The conditions as the agent last saw them, and since when each has its value.
package struct ObservedConditions: Codable, Sendable, Equatable {
    package var conditions: DesktopConditions
    package var networkSince: Date
    package var powerSince: Date
    /// Since when power is saved, or is not.
    package var savingSince: Date?
    /// When somebody first looked: what was found then is no change.
    package var firstLookAt: Date?
    /// When the host last woke from sleep.
    package var resumedAt: Date?

    package init(conditions: DesktopConditions, networkSince: Date, powerSince: Date) {
        self.conditions = conditions
        self.networkSince = networkSince
        self.powerSince = powerSince
    }
}

/// What the agent last knew of waking the machine.
package struct AlarmReport: Codable, Sendable, Equatable {
    /// For when an alarm is set; `nil`: none is.
    package var alarm: Date?
    /// Why none is.
    package var obstacle: WakeObstacle?
    /// Since when it has been so.
    package var since: Date

    package init(alarm: Date?, obstacle: WakeObstacle?, since: Date) {
        (self.alarm, self.obstacle, self.since) = (alarm, obstacle, since)
    }
}

/// A named value of the ledger that is one of a kind.
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
    /// The agent has left, and is started again; absent: it is there, or was killed.
    package static var absence: Self { Self("absence") }
}
extension FactName where Value == ObservedConditions {
    package static var conditions: Self { Self("conditions") }
}
extension FactName where Value == AlarmReport {
    /// Absent: no request wants the machine woken, or no agent has looked yet.
    package static var alarm: Self { Self("alarm") }
}
extension FactName where Value == SignificantTime {
    /// Day and zone as the app was last told; absent: it does not want to be told.
    package static var significantTime: Self { Self("significantTime") }
    /// Day and zone that a running launch is about.
    package static var significantTimeBeingTold: Self { Self("significantTimeBeingTold") }
}
extension FactName where Value == Int {
    /// Counts task identifiers, so that one is never given twice to a session.
    package static var lastTaskIdentifier: Self { Self("lastTaskIdentifier") }
    /// The number on the app's icon.
    package static var badge: Self { Self("badge") }
    /// The number that docks were told.
    package static var badgeTold: Self { Self("badgeTold") }
}
extension FactName where Value == Date {
    /// When somebody last wanted a transfer tried at once.
    package static var retriedAt: Self { Self("retriedAt") }
    /// When the app's files changed last (``AgentSettings/watchedFiles``).
    package static var appChangedAt: Self { Self("appChangedAt") }
    /// Since when the desktop shows no notifications at the person's wish.
    package static var doNotDisturbSince: Self { Self("doNotDisturbSince") }
    /// The last instant that the machine was woken for: it is never woken for it again.
    package static var servedWake: Self { Self("servedWake") }
    /// About when an agent last looked at this ledger.
    package static var lookedAt: Self { Self("lookedAt") }
}
extension FactName where Value == [Int64] {
    /// Launches that run and whose apps began background transfers.
    package static var launchesWithTransfers: Self { Self("launchesWithTransfers") }
}
extension FactName where Value == Bool {
    /// The notification server advertises buttons, and is not one of ``serversWithoutButtons``; absent: it was not asked, or is gone.
    package static var serverHasButtons: Self { Self("serverHasButtons") }
}
extension FactName where Value == ServerKnowledge {
    /// What the server behind an upload's address turned out to be able to do. By address and bucket, as a bucket has its region
    /// and a proxy its limits for one path and not for another.
    package static func server(of transfer: TransferRecord) -> Self {
        Self("server:" + PublicAddress.of(transfer.url) + (transfer.upload?.s3?.bucket.map { " " + $0 } ?? ""))
    }
}
extension FactName where Value == [String] {
    /// Of notifications that were not seen, those that a person has read of in a terminal.
    package static var noticesListed: Self { Self("noticesListed") }
    /// Labels of notification servers that advertise buttons, and whose button a user did not find in `notify --test`.
    package static var serversWithoutButtons: Self { Self("serversWithoutButtons") }
}
extension FactName where Value == String {
    /// The time zone in which the occurrence of a request's rule was planned last. Absent if an earlier version planned it.
    package static func zone(ofRequest identifier: String) -> Self { Self("zone:" + identifier) }
    /// `FileIdentity` of the spool folder that the queued copies were put into. Absent if the folder is not known.
    package static var spool: Self { Self("spool") }
    /// Which notification server gave the numbers that stand in the ledger: its bus and its name there.
    package static var notificationServer: Self { Self("notificationServer") }
    /// Why the notification server could not be reached; absent when it can.
    package static var presenterTrouble: Self { Self("presenterTrouble") }
    /// Why nobody would start the agent again if it left; absent: somebody does, or it has not tried to leave.
    package static var activationTrouble: Self { Self("activationTrouble") }
}

/// The facts as they were read last: the same text again, as almost always, is not decoded again.
private final class DecodedFacts: Sendable {
    static let shared = DecodedFacts()
    private let known = Mutex<[String: (text: String, value: any Sendable)]>([:])

    func value<Value: Decodable & Sendable>(_ name: String, _ text: String) -> Value? {
        if let (known, value) = known.withLock({ $0[name] }), known == text, let value = value as? Value { return value }
        guard let value = try? JSONDecoder().decode(Value.self, from: Data(text.utf8)) else { return nil }
        // What servers can do is many facts; a bound for all of them.
        known.withLock { if $0.count < 64 || $0[name] != nil { $0[name] = (text, value) } }
        return value
    }
}

extension LedgerTransaction {
    /// What cannot be read counts as absent: every fact is said again by whoever knows it.
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

    /// Writes only a changed value, so that repeating it rings no bell.
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
