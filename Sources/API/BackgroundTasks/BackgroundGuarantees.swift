import BackgroundRuntime

/// What this desktop keeps of an app's background work: what the work survives, and what the agent knows here. Each with its reason.
///
/// ```swift
/// let survivesLogout = BackgroundGuarantees.current.survivesLogout
/// if !survivesLogout.isKept { show(survivesLogout.reason, command: survivesLogout.help) }
/// ```
///
/// None of them is about what was accepted: that is in the ledger on the disk, whatever happens. They say when, and whether by itself, it goes
/// on. `background doctor` prints them.
///
/// Differs from Apple: beyond it. iOS keeps the same on every device, and documents part of it.
public struct BackgroundGuarantees: Sendable, Equatable, Codable {
    /// One guarantee, as it stands on this desktop.
    public struct Guarantee: Sendable, Equatable, Codable {
        /// What is guaranteed: the name of its property in ``BackgroundGuarantees``.
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

        /// How a guarantee stands.
        public enum Verdict: String, Sendable, Codable, CaseIterable {
            /// It holds, and nobody has to do anything for it.
            case kept
            /// Nothing is lost, and the work goes on by itself when the person logs in again.
            case keptFromNextLogin
            /// It does not hold here.
            case notKept
            /// Nobody has looked yet: the agent does, with its first work.
            case unknown
        }

        /// Which one.
        public let name: Name
        /// How it stands.
        public let verdict: Verdict
        /// Why: one sentence for a person, in English.
        public let reason: String
        /// A command for a shell that makes it better; `nil`: there is none, or it is not known.
        public let help: String?

        /// The verdict is `kept`.
        public var isKept: Bool { verdict == .kept }
    }

    /// After a logout the work goes on. It does with lingering alone: without it a logout ends the user manager and the agent with it.
    /// Source of the rule: loginctl(1), `enable-linger`.
    public let survivesLogout: Guarantee
    /// After a reboot the work goes on: at boot with lingering, else when the person logs in, by the user unit or the entry in autostart.
    /// Source of the rule: systemd.special(7), `default.target`; the Desktop Application Autostart Specification.
    public let survivesReboot: Guarantee
    /// After `kill -9` of the app and of the agent the work goes on. A user manager starts the agent again; without one the app's next command or the next
    /// login does. Source of the rule: systemd.service(5), `Restart=`.
    ///
    /// Differs from Apple: there a person who swipes the app away ends its refreshes and its transfers.
    public let survivesForceQuit: Guarantee
    /// The machine wakes from sleep for what is due. Source of the rule: timerfd_create(2), `CLOCK_BOOTTIME_ALARM`, which needs `CAP_WAKE_ALARM`.
    public let wakesSystem: Guarantee
    /// Somebody says whether there is a network. Otherwise one is taken for granted.
    public let networkIsKnown: Guarantee
    /// Somebody says whether the network is metered. Otherwise it counts as free. NetworkManager knows it, and in a sandbox the portal.
    public let meteredIsKnown: Guarantee
    /// Somebody says whether the machine is on external power. Otherwise it counts as plugged in.
    public let powerIsKnown: Guarantee
    /// Buttons of notifications are shown, and what a person presses is heard.
    public let buttonsAreLive: Guarantee

    /// All of them, in the order in which they stand here.
    public var all: [Guarantee] {
        [
            survivesLogout, survivesReboot, survivesForceQuit, wakesSystem, networkIsKnown, meteredIsKnown, powerIsKnown,
            buttonsAreLive,
        ]
    }

    /// As it stands at this moment. Ask again after a change: a login, an installation, a first notification.
    ///
    /// What only an agent can see (network, power, notification server) is what it wrote down last. In a test with `TestDriver` the answers are
    /// those of a desktop with lingering and a notification server with buttons: all are kept but ``wakesSystem``.
    ///
    /// Errors: none. What cannot be looked up, as in a ledger that cannot be read, is `unknown`.
    /// Cost: a dozen looks at files and one read of the ledger; no question to another process. Nothing is made or started.
    public static var current: BackgroundGuarantees { BackgroundGuarantees(AppRuntime.shared.desktopFacts) }
}
