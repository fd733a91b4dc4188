import BackgroundRuntime

// What follows from the facts of a desktop. Pure: no file is looked at here.

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

/// Who starts an agent that is gone.
private enum Starter {
    case userManager
    /// The next login, or the app's next command.
    case login
    /// Nobody but the app's next command.
    case nobody(why: String, help: String? = nil)
}

extension DesktopFacts {
    /// After it was killed.
    fileprivate var starterAfterKill: Starter {
        guard hasAgent else { return .nobody(why: "The program background-agent is not installed: nothing is woken.") }
        guard !isInFlatpak else {
            return .nobody(why: "In a Flatpak only the app starts the agent: work goes on with the app's next start.")
        }
        switch entry {
        case .none(workIsLeft: false): return hasUserManager ? .userManager : .login
        case .none(workIsLeft: true):
            return .nobody(why: "No login starts the agent: work goes on with the app's next command.", help: installCommand)
        case .userUnit(let standing): return starter(standing) ?? (hasUserManager ? .userManager : .login)
        // Started by nobody's unit, it is restarted by none.
        case .xdgAutostart(let standing): return starter(standing) ?? .login
        }
    }

    /// At a login, or at boot.
    fileprivate var starterAtLogin: Starter {
        guard case .userUnit(.isNotEnabled) = entry else { return starterAfterKill }
        return .nobody(why: "The agent's unit is not enabled: no login starts it.", help: installCommand)
    }

    /// `nil`: the entry does its work.
    private func starter(_ standing: AutostartEntry.Standing) -> Starter? {
        switch standing {
        // Another copy is an agent, too; a unit that is not enabled restarts what runs.
        case .asItShouldBe, .starts, .isNotEnabled, .lacksSocket: nil
        case .startsNothing:
            .nobody(why: "What starts the agent at login names a program that is not there.", help: installCommand)
        case .isMasked: .nobody(why: "The agent's unit is masked: the user manager does not start it.")
        }
    }
}

extension BackgroundGuarantees.Guarantee {
    private static let enableLingering = "loginctl enable-linger"

    fileprivate static func survivesLogout(_ facts: DesktopFacts) -> Self {
        switch facts.starterAtLogin {
        case .userManager where facts.lingers:
            Self(.survivesLogout, .kept, "Lingering is on: the user manager keeps the agent running after a logout.")
        case .userManager:
            Self(
                .survivesLogout, .keptFromNextLogin, "A logout ends the agent with the user manager; the next login starts it.",
                help: enableLingering)
        case .login:
            Self(.survivesLogout, .keptFromNextLogin, "A logout may end the agent; the next login to the desktop starts it.")
        case .nobody(let why, let help): Self(.survivesLogout, .notKept, why, help: help)
        }
    }

    fileprivate static func survivesReboot(_ facts: DesktopFacts) -> Self {
        switch facts.starterAtLogin {
        case .userManager where facts.lingers:
            Self(.survivesReboot, .kept, "Lingering is on: the user manager starts the agent at boot.")
        case .userManager:
            Self(
                .survivesReboot, .keptFromNextLogin, "The user manager starts the agent at the next login.",
                help: enableLingering)
        case .login: Self(.survivesReboot, .keptFromNextLogin, "The next login to the desktop starts the agent.")
        case .nobody(let why, let help): Self(.survivesReboot, .notKept, why, help: help)
        }
    }

    fileprivate static func survivesForceQuit(_ facts: DesktopFacts) -> Self {
        switch facts.starterAfterKill {
        case .userManager:
            Self(
                .survivesForceQuit, .kept, "The user manager starts a killed agent again within 10 s, and the agent a killed app."
            )
        case .login:
            Self(
                .survivesForceQuit, .keptFromNextLogin,
                "The agent starts a killed app again; a killed agent comes back with the app's next command or the next login.")
        case .nobody(let why, let help): Self(.survivesForceQuit, .notKept, why, help: help)
        }
    }

    fileprivate static func wakesSystem(_ facts: DesktopFacts) -> Self {
        switch facts.waking {
        case .notAllowed:
            Self(
                .wakesSystem, .notKept,
                "This system allows no timer that wakes the machine (CAP_WAKE_ALARM, which systemd 254 gives to people's sessions)."
            )
        case .untried: Self(.wakesSystem, .unknown, "No request has asked for it yet: the first one shows it.")
        case .alarmIsSet: Self(.wakesSystem, .kept, "An alarm wakes the machine for requests that ask for it.")
        case .hindered(let obstacle): Self(.wakesSystem, .notKept, "Not now: \(obstacle.words).")
        }
    }

    fileprivate static func networkIsKnown(_ facts: DesktopFacts) -> Self {
        known(
            .networkIsKnown, facts.knowledge?.network, "NetworkManager or the kernel says whether there is a network.",
            "Nobody says whether there is a network: one is taken for granted.")
    }

    fileprivate static func meteredIsKnown(_ facts: DesktopFacts) -> Self {
        known(
            .meteredIsKnown, facts.knowledge?.metered, "NetworkManager or the portal says whether the network is metered.",
            "Nobody says whether the network is metered, as NetworkManager would: it counts as free.")
    }

    fileprivate static func powerIsKnown(_ facts: DesktopFacts) -> Self {
        known(
            .powerIsKnown, facts.knowledge?.power, "UPower or the kernel says whether the machine is plugged in.",
            "Nobody says whether the machine is plugged in: it counts as plugged in.")
    }

    private static func known(_ name: Name, _ isKnown: Bool?, _ who: String, _ otherwise: String) -> Self {
        switch isKnown {
        case true?: Self(name, .kept, who)
        case false?: Self(name, .notKept, otherwise)
        case nil: Self(name, .unknown, "No agent has looked yet: it does with the first work.")
        }
    }

    fileprivate static func buttonsAreLive(_ facts: DesktopFacts) -> Self {
        switch facts.buttons {
        case .shown:
            Self(.buttonsAreLive, .kept, "The notification server shows buttons, and the agent hears what is pressed.")
        case .notShown: Self(.buttonsAreLive, .notKept, "The notification server shows no buttons.")
        case .unreachable(let why): Self(.buttonsAreLive, .notKept, "Notifications cannot be shown: \(why).")
        case .noSession:
            Self(
                .buttonsAreLive, .notKept,
                "No desktop is known to show them on: a command of the app in a terminal of the desktop makes it known.")
        case .switchedOff: Self(.buttonsAreLive, .notKept, "Notifications are turned off in the app's settings.")
        case .unknown:
            Self(.buttonsAreLive, .unknown, "The notification server was not asked yet: the first notification does.")
        }
    }

    private init(_ name: Name, _ verdict: Verdict, _ reason: String, help: String? = nil) {
        (self.name, self.verdict, self.reason, self.help) = (name, verdict, reason, help)
    }
}
