import BackgroundLedger
import BackgroundScheduling
import Foundation
import ProcessSupport
import UserUnits

/// The facts about this machine and this app that decide when background work continues. The facts are read only from files and
/// the ledger, so no other process has to respond.
package struct DesktopFacts: Sendable, Equatable {
    /// The entry that starts the agent at login.
    package enum Entry: Sendable, Equatable {
        /// No entry for the start at login is installed. The entry is written when the app submits the first work that must
        /// continue after a logout or reboot.
        case none(workIsLeft: Bool)
        case userUnit(AutostartEntry.EntryState)
        case xdgAutostart(AutostartEntry.EntryState)
    }

    /// The support for buttons of notifications.
    package enum Buttons: Sendable, Equatable {
        /// The notification server has not been queried yet.
        case unknown
        case switchedOff
        case noSession
        /// Notifications cannot be shown. The value contains the reason.
        case unreachable(String)
        case notShown
        case shown
    }

    /// The support for waking the machine from sleep.
    package enum Waking: Sendable, Equatable {
        /// This process and the user manager do not have the permission to set an alarm.
        case notAllowed
        /// No request has needed an alarm so far, so the agent has not tried to set an alarm.
        case untried
        case alarmIsSet
        /// An agent could not set an alarm. The value is the reason.
        case hindered(WakeObstacle)
    }

    /// `true` if the agent's program was found, or if a unit that starts the agent is installed.
    package var hasAgent: Bool
    /// `true` in a Flatpak sandbox. Login entries and units that are written in the sandbox have no effect outside the sandbox.
    package var isInFlatpak: Bool
    package var hasUserManager: Bool
    /// `true` if the user manager runs from boot on, even if the user is not logged in.
    package var lingers: Bool
    package var entry: Entry
    package var waking: Waking
    /// Shows which facts about network and power the services of the desktop report. `nil` if no agent has examined these
    /// services.
    package var knowledge: DesktopConditions.Knowledge?
    package var buttons: Buttons
    /// The command that repairs the login entry, or `nil` if the command is not known.
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

    /// The facts that an agent last recorded in the ledger.
    package struct Recorded: Sendable, Equatable {
        package var knowledge: DesktopConditions.Knowledge?
        package var notificationsEnabled = true
        package var presenterTrouble: String?
        package var serverHasButtons: Bool?
        package var serversWithoutButtons: [String] = []
        package var alarm: AlarmReport?
        package var knowsSession = false
        package var hasWorkLeft = false

        /// Creates the default values, which are used if no agent has recorded facts in the ledger.
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

    /// Examines this machine. Cost: about a dozen file checks.
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

    /// Returns whether the machine can be woken. If an agent has tried to set an alarm, the recorded result is used. Before the
    /// agent has tried to set an alarm, only the permission (capability) can be examined. An agent inherits the capabilities of
    /// the process that starts the agent (this process or the user manager).
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
        // An agent without the variable `DBUS_SESSION_BUS_ADDRESS` looks for the socket of the session bus at this path.
        let socket = environment["XDG_RUNTIME_DIR"].map { $0 + "/bus" }
        let isKnown =
            recorded.knowsSession || environment["DBUS_SESSION_BUS_ADDRESS"] != nil
            || socket.map { access($0, F_OK) == 0 } == true
        return isKnown ? .unknown : .noSession
    }

    /// The facts about the desktop that a test host simulates. The test host restarts an agent immediately, reports network and
    /// power, and shows notifications with buttons.
    package static let onTestHost = DesktopFacts(
        hasAgent: true, isInFlatpak: false, hasUserManager: true, lingers: true, entry: .userUnit(.asItShouldBe),
        waking: .notAllowed,
        knowledge: DesktopConditions.Knowledge(network: true, metered: true, power: true), buttons: .shown)
}
