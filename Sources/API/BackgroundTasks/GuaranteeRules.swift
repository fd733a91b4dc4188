import BackgroundRuntime

// The rules that determine, from the facts about a desktop, which capabilities the desktop has. These rules do not read files.

extension BackgroundGuarantees {
    package init(_ facts: DesktopFacts) {
        survivesLogout = .survivesLogout(facts)
        survivesReboot = .survivesReboot(facts)
        survivesForceQuit = .survivesForceQuit(facts)
        wakesSystem = .wakesSystem(facts)
        networkIsKnown = .networkIsKnown(facts)
        meteredIsKnown = .meteredIsKnown(facts)
        powerIsKnown = .powerIsKnown(facts)
        buttonsAreLive = .buttonsAreLive(facts)
    }
}

/// The mechanism that starts the agent again after the agent has ended.
private enum Starter {
    case userManager
    /// The next login, or the next command of the app, starts the agent.
    case login
    /// Only the app's next command starts the agent.
    case none(why: String, help: String? = nil)
}

extension DesktopFacts {
    /// The mechanism that starts the agent again after the agent was killed.
    fileprivate var starterAfterKill: Starter {
        guard hasAgent else { return .none(why: "The program background-agent is not installed, so no background work runs.") }
        guard !isInFlatpak else {
            return .none(why: "In a Flatpak only the app starts the agent, so work continues at the app's next start.")
        }
        switch entry {
        case .none(workIsLeft: false): return hasUserManager ? .userManager : .login
        case .none(workIsLeft: true):
            return .none(
                why: "The agent does not start at login, so work continues when you run a command of the app.",
                help: installCommand)
        case .userUnit(let standing): return starter(standing) ?? (hasUserManager ? .userManager : .login)
        // An XDG autostart entry starts the agent at the next login. No systemd unit starts the agent again after a kill.
        case .xdgAutostart(let standing): return starter(standing) ?? .login
        }
    }

    /// The mechanism that starts the agent at a login or at boot.
    fileprivate var starterAtLogin: Starter {
        guard case .userUnit(.isNotEnabled) = entry else { return starterAfterKill }
        return .none(why: "The agent's systemd unit is not enabled, so no login starts the agent.", help: installCommand)
    }

    /// Returns `nil` if the login entry can start the agent. Otherwise returns the reason why only the app's next command starts
    /// the agent.
    private func starter(_ standing: AutostartEntry.EntryState) -> Starter? {
        switch standing {
        // An entry with another path also works, because it starts another copy of the agent's program. A unit that is not
        // enabled does not start the agent at login, but can start the agent again after a kill.
        case .asItShouldBe, .starts, .isNotEnabled, .lacksSocket: nil
        case .startsNothing:
            .none(why: "The login entry of the agent names a program that does not exist.", help: installCommand)
        case .isMasked: .none(why: "The agent's systemd unit is masked, so the user manager does not start the agent.")
        }
    }
}

extension BackgroundGuarantees.Guarantee {
    private static let enableLingering = "loginctl enable-linger"

    fileprivate static func survivesLogout(_ facts: DesktopFacts) -> Self {
        switch facts.starterAtLogin {
        case .userManager where facts.lingers:
            Self(.survivesLogout, .kept, "Lingering is on, so the user manager keeps the agent running after a logout.")
        case .userManager:
            Self(
                .survivesLogout, .keptFromNextLogin,
                "A logout ends the user manager and the agent. The next login starts the agent.",
                help: enableLingering)
        case .login:
            Self(
                .survivesLogout, .keptFromNextLogin, "A logout may end the agent. The next login to the desktop starts the agent."
            )
        case .none(let why, let help): Self(.survivesLogout, .notKept, why, help: help)
        }
    }

    fileprivate static func survivesReboot(_ facts: DesktopFacts) -> Self {
        switch facts.starterAtLogin {
        case .userManager where facts.lingers:
            Self(.survivesReboot, .kept, "Lingering is on, so the user manager starts the agent at boot.")
        case .userManager:
            Self(
                .survivesReboot, .keptFromNextLogin, "The user manager starts the agent at the next login.",
                help: enableLingering)
        case .login: Self(.survivesReboot, .keptFromNextLogin, "The next login to the desktop starts the agent.")
        case .none(let why, let help): Self(.survivesReboot, .notKept, why, help: help)
        }
    }

    fileprivate static func survivesForceQuit(_ facts: DesktopFacts) -> Self {
        switch facts.starterAfterKill {
        case .userManager:
            Self(
                .survivesForceQuit, .kept,
                "The user manager starts a killed agent again within 10 s. The agent starts a killed app again."
            )
        case .login:
            Self(
                .survivesForceQuit, .keptFromNextLogin,
                "The agent starts a killed app again. The app's next command or the next login starts a killed agent.")
        case .none(let why, let help): Self(.survivesForceQuit, .notKept, why, help: help)
        }
    }

    fileprivate static func wakesSystem(_ facts: DesktopFacts) -> Self {
        switch facts.waking {
        case .notAllowed:
            Self(
                .wakesSystem, .notKept,
                "This system does not allow timers that wake the machine (CAP_WAKE_ALARM, which systemd 254 grants to user sessions)."
            )
        case .untried:
            Self(
                .wakesSystem, .unknown,
                "No request that wakes the machine was submitted yet. The first such request shows whether the system allows it.")
        case .alarmIsSet: Self(.wakesSystem, .kept, "An alarm wakes the machine for requests that require this.")
        case .hindered(let obstacle): Self(.wakesSystem, .notKept, "Not now: \(obstacle.words).")
        }
    }

    fileprivate static func networkIsKnown(_ facts: DesktopFacts) -> Self {
        known(
            .networkIsKnown, facts.knowledge?.network, "NetworkManager or the kernel reports whether there is a network.",
            "No service reports whether there is a network, so the agent assumes that a network is available.")
    }

    fileprivate static func meteredIsKnown(_ facts: DesktopFacts) -> Self {
        known(
            .meteredIsKnown, facts.knowledge?.metered, "NetworkManager or the portal reports whether the network is metered.",
            "NetworkManager does not run, so the network counts as unmetered.")
    }

    fileprivate static func powerIsKnown(_ facts: DesktopFacts) -> Self {
        known(
            .powerIsKnown, facts.knowledge?.power, "UPower or the kernel reports whether the machine is plugged in.",
            "No service reports external power, so the machine counts as plugged in.")
    }

    private static func known(_ name: Name, _ isKnown: Bool?, _ who: String, _ otherwise: String) -> Self {
        switch isKnown {
        case true?: Self(name, .kept, who)
        case false?: Self(name, .notKept, otherwise)
        case nil: Self(name, .unknown, "No agent has checked the machine yet. The agent checks the machine when there is work.")
        }
    }

    fileprivate static func buttonsAreLive(_ facts: DesktopFacts) -> Self {
        switch facts.buttons {
        case .shown:
            Self(.buttonsAreLive, .kept, "The notification server shows buttons, and the agent receives presses.")
        case .notShown: Self(.buttonsAreLive, .notKept, "The notification server shows no buttons.")
        case .unreachable(let why): Self(.buttonsAreLive, .notKept, "Notifications cannot be shown: \(why).")
        case .noSession:
            Self(
                .buttonsAreLive, .notKept,
                "The desktop is not known yet. Run a command of the app in a terminal on the desktop.")
        case .switchedOff: Self(.buttonsAreLive, .notKept, "Notifications are turned off in the app's settings.")
        case .unknown:
            Self(
                .buttonsAreLive, .unknown,
                "The notification server was not checked yet. The first notification checks the server.")
        }
    }

    private init(_ name: Name, _ verdict: Verdict, _ reason: String, help: String? = nil) {
        (self.name, self.verdict, self.reason, self.help) = (name, verdict, reason, help)
    }
}
