import BackgroundLedger
import BackgroundScheduling
import Foundation
import ProcessSupport
import UserUnits

/// What is known of this machine and this app that decides what background work outlives here. Looked up in files and in the ledger alone:
/// nothing of it waits for another process.
package struct DesktopFacts: Sendable, Equatable {
    /// The entry that starts the agent at login.
    package enum Entry: Sendable, Equatable {
        /// Nothing is installed. It is written with the first work that is to outlive a login.
        case none(workIsLeft: Bool)
        case userUnit(AutostartEntry.Standing)
        case xdgAutostart(AutostartEntry.Standing)
    }

    /// Whether a person who presses a button of a notification is heard.
    package enum Buttons: Sendable, Equatable {
        /// Nobody has asked the notification server yet.
        case unknown
        case switchedOff
        case noSession
        /// Why notifications cannot be shown.
        case unreachable(String)
        case notShown
        case shown
    }

    /// Whether the machine is woken from its sleep.
    package enum Waking: Sendable, Equatable {
        /// Neither this process nor the user manager may set an alarm.
        case notAllowed
        /// No request has asked for it yet.
        case untried
        case alarmIsSet
        /// What an agent that wanted to was kept by.
        case hindered(WakeObstacle)
    }

    /// The agent's program was found, or a unit that starts it is installed.
    package var hasAgent: Bool
    /// In a Flatpak sandbox, whose entries and units nobody outside reads.
    package var isInFlatpak: Bool
    package var hasUserManager: Bool
    /// The user manager runs from boot on, whether the person is logged in or not.
    package var lingers: Bool
    package var entry: Entry
    package var waking: Waking
    /// What of network and power somebody says; `nil`: nobody has looked yet.
    package var knowledge: DesktopConditions.Knowledge?
    package var buttons: Buttons
    /// What a person types to put the entry right; `nil`: that is not known here.
    package var installCommand: String?

    package init(
        hasAgent: Bool, isInFlatpak: Bool, hasUserManager: Bool, lingers: Bool, entry: Entry,
        waking: Waking, knowledge: DesktopConditions.Knowledge?, buttons: Buttons,
        installCommand: String? = nil
    ) {
        (self.hasAgent, self.isInFlatpak, self.hasUserManager) = (hasAgent, isInFlatpak, hasUserManager)
        (self.lingers, self.entry, self.waking) = (lingers, entry, waking)
        (self.knowledge, self.buttons) = (knowledge, buttons)
        self.installCommand = installCommand
    }

    /// What the ledger says of it, as an agent saw it last.
    package struct Recorded: Sendable, Equatable {
        package var knowledge: DesktopConditions.Knowledge?
        package var notificationsEnabled = true
        package var presenterTrouble: String?
        package var serverHasButtons: Bool?
        package var serversWithoutButtons: [String] = []
        package var alarm: AlarmReport?
        package var knowsSession = false
        package var hasWorkLeft = false

        /// Of a ledger that nobody has written yet.
        package init() {}

        package init(_ transaction: LedgerTransaction) throws {
            knowledge = try transaction.fact(.conditions)?.conditions.knowledge
            notificationsEnabled = try transaction.fact(.settings)?.notificationsEnabled ?? true
            presenterTrouble = try transaction.fact(.presenterTrouble)
            serverHasButtons = try transaction.fact(.serverHasButtons)
            serversWithoutButtons = try transaction.fact(.serversWithoutButtons) ?? []
            alarm = try transaction.fact(.alarm)
            knowsSession = try transaction.fact(.sessionEnvironment)?.variables["DBUS_SESSION_BUS_ADDRESS"] != nil
            hasWorkLeft = try transaction.hasUnfinishedWork()
        }
    }

    /// Looks at this machine. Cost: a dozen looks at files.
    package init(_ directories: AppDirectories, environment: [String: String], recorded: Recorded) {
        let entry = AutostartEntry(directories: directories, environment: environment)
        let agent = try? AgentStarter.findAgent(environment: environment).get()
        self.init(
            hasAgent: agent != nil || entry.isUserUnitInstalled, isInFlatpak: access("/.flatpak-info", F_OK) == 0,
            hasUserManager: entry.units.hasManager, lingers: UserUnits.lingers,
            entry: Self.entry(entry, agent ?? "", recorded),
            waking: Self.waking(recorded.alarm), knowledge: recorded.knowledge,
            buttons: Self.buttons(recorded, environment))
    }

    private static func entry(_ entry: AutostartEntry, _ agent: String, _ recorded: Recorded) -> Entry {
        guard let installed = entry.installed, let standing = entry.standing(agent: agent) else {
            return .none(workIsLeft: recorded.hasWorkLeft)
        }
        switch installed {
        case .userUnit: return .userUnit(standing)
        case .xdgAutostart: return .xdgAutostart(standing)
        }
    }

    /// An agent that tried knows best. Before, only the capability can be looked at: an agent has those of who starts it, which is this
    /// process or the user manager.
    private static func waking(_ report: AlarmReport?) -> Waking {
        if let obstacle = report?.obstacle { return .hindered(obstacle) }
        if report?.alarm != nil { return .alarmIsSet }
        let mayBe = [nil, UserUnits.managerProcess].contains { ProcessCapabilities(of: $0)?.has(.wakeAlarm) == true }
        return mayBe ? .untried : .notAllowed
    }

    private static func buttons(_ recorded: Recorded, _ environment: [String: String]) -> Buttons {
        guard recorded.notificationsEnabled else { return .switchedOff }
        if let trouble = recorded.presenterTrouble { return .unreachable(trouble) }
        if let hasButtons = recorded.serverHasButtons { return hasButtons ? .shown : .notShown }
        // Where an agent looks for a session's bus.
        let socket = environment["XDG_RUNTIME_DIR"].map { $0 + "/bus" }
        let isKnown =
            recorded.knowsSession || environment["DBUS_SESSION_BUS_ADDRESS"] != nil
            || socket.map { access($0, F_OK) == 0 } == true
        return isKnown ? .unknown : .noSession
    }

    /// In a test: its host brings an agent back at once, says everything of network and power, and shows notifications with buttons.
    package static let onTestHost = DesktopFacts(
        hasAgent: true, isInFlatpak: false, hasUserManager: true, lingers: true, entry: .userUnit(.asItShouldBe),
        waking: .notAllowed,
        knowledge: DesktopConditions.Knowledge(network: true, metered: true, power: true), buttons: .shown)
}
