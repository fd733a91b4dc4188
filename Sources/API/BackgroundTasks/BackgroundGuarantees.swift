import BackgroundRuntime

/// The capabilities of this desktop for background work. Some capabilities state whether work continues after an event, such as a
/// logout. Other capabilities state whether the agent can detect a fact, such as the network state. Each capability has a state
/// and a reason.
///
/// ```swift
/// let survivesLogout = BackgroundGuarantees.current.survivesLogout
/// if !survivesLogout.isKept { show(survivesLogout.reason, command: survivesLogout.help) }
/// ```
///
/// Accepted work is always safe, because the agent's database (ledger) is on the disk. A capability describes when the work
/// continues, and whether the user has to do something first. The command `background doctor --all` of the app (module
/// `BackgroundCommands`) prints all capabilities.
///
/// Differs from Apple: iOS has no such type, because every device has the same capabilities.
public struct BackgroundGuarantees: Sendable, Equatable, Codable {
    /// A capability of this desktop.
    public struct Guarantee: Sendable, Equatable, Codable {
        /// The names of the capabilities. A capability has the name of its property in ``BackgroundGuarantees``.
        public enum Name: String, Sendable, Codable, CaseIterable {
            /// See ``BackgroundGuarantees/survivesLogout``.
            case survivesLogout
            /// See ``BackgroundGuarantees/survivesReboot``.
            case survivesReboot
            /// See ``BackgroundGuarantees/survivesForceQuit``.
            case survivesForceQuit
            /// See ``BackgroundGuarantees/wakesSystem``.
            case wakesSystem
            /// See ``BackgroundGuarantees/networkIsKnown``.
            case networkIsKnown
            /// See ``BackgroundGuarantees/meteredIsKnown``.
            case meteredIsKnown
            /// See ``BackgroundGuarantees/powerIsKnown``.
            case powerIsKnown
            /// See ``BackgroundGuarantees/buttonsAreLive``.
            case buttonsAreLive
        }

        /// The state of a capability.
        public enum Verdict: String, Sendable, Codable, CaseIterable {
            /// The desktop has the capability, without an action of the user.
            case kept
            /// The work is not lost, and continues without a command when the user logs in again.
            case keptFromNextLogin
            /// The desktop does not have the capability.
            case notKept
            /// The state is not known yet. An agent detects the state during the agent's first work.
            case unknown
        }

        /// The name of the capability.
        public let name: Name
        /// The state of the capability.
        public let verdict: Verdict
        /// The reason for the state: one English sentence for users.
        public let reason: String
        /// A shell command that improves the state, or `nil` if such a command does not exist or is not known.
        public let help: String?

        /// A Boolean value that indicates whether ``verdict`` is `kept`.
        public var isKept: Bool { verdict == .kept }
    }

    /// The work continues after a logout. The capability requires lingering, because without lingering a logout ends the user
    /// manager and the agent. Source of the rule: loginctl(1), `enable-linger`.
    public let survivesLogout: Guarantee
    /// The work continues after a reboot. With lingering, the work continues at boot. Without lingering, the work continues when
    /// the user logs in, because the user unit or the autostart entry starts the agent. Source of the rule: systemd.special(7),
    /// `default.target`; the Desktop Application Autostart Specification.
    public let survivesReboot: Guarantee
    /// The work continues after `kill -9` of the app and the agent. A user manager starts the agent again. Without a user
    /// manager, the app's next command or the next login starts the agent again. Source of the rule: systemd.service(5),
    /// `Restart=`.
    ///
    /// Differs from Apple: on iOS, a user who swipes the app away ends the app's refreshes and transfers.
    public let survivesForceQuit: Guarantee
    /// The machine wakes from sleep for work that is due. Source of the rule: timerfd_create(2), `CLOCK_BOOTTIME_ALARM`, which
    /// needs `CAP_WAKE_ALARM`.
    public let wakesSystem: Guarantee
    /// A service reports whether the machine has a network connection. Without such a service, the agent assumes a connection.
    public let networkIsKnown: Guarantee
    /// A service (NetworkManager, or the portal in a sandbox) reports whether the network is metered. Without such a service, the
    /// agent assumes that the network is not metered.
    public let meteredIsKnown: Guarantee
    /// A service reports whether the machine is on external power. Without such a service, the agent assumes external power.
    public let powerIsKnown: Guarantee
    /// Notifications show buttons, and the agent is notified if the user presses a button.
    public let buttonsAreLive: Guarantee

    /// All capabilities, in the order of the properties.
    public var all: [Guarantee] {
        [
            survivesLogout, survivesReboot, survivesForceQuit, wakesSystem, networkIsKnown, meteredIsKnown, powerIsKnown,
            buttonsAreLive,
        ]
    }

    /// The current capabilities. Read the property again after a change, for example after a login, an installation or the first
    /// notification.
    ///
    /// The facts about the network, power and the notification server are the facts that an agent last recorded. Only an agent
    /// can detect these facts. In a test with `TestDriver`, the desktop has all capabilities except ``wakesSystem``.
    ///
    /// This property throws no errors. If a fact cannot be examined, for example because the ledger cannot be read, the state is
    /// `unknown`. Cost: about a dozen file checks and one read of the ledger. No other process is called or started, and no file
    /// is created.
    public static var current: BackgroundGuarantees { BackgroundGuarantees(AppRuntime.shared.desktopFacts) }
}
