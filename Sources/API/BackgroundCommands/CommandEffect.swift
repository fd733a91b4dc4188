/// The effect of a command on the background work of its app. The effect decides whether settings are read before the command,
/// and whether an agent is started after the command.
public enum CommandEffect: Sendable {
    /// The command only shows data. If the agent's database (ledger) does not exist, the command does not create it. If the
    /// ledger cannot be written, the command reads a copy in memory. An agent is started if the ledger has unfinished work.
    case reads
    /// The command shows a summary of the background work, and lists the notifications that could not be shown. In all other
    /// respects, the effect is the same as ``reads``.
    case summarizes
    /// The command changes background work. An agent is started if the ledger has unfinished work.
    case changes
    /// The command changes the installation or the configuration, and needs no settings of the app. An agent is started if the
    /// ledger has unfinished work.
    case installs
    /// The command examines the app for problems, and needs no settings of the app. An agent is not started.
    case examines
    /// The command ends work, or acts on the agent itself. An agent is not started.
    case ends

    /// `true` if the command changes nothing.
    package var changesNothing: Bool { self == .reads || self == .summarizes }
    /// `true` if the settings of the app must be read before the command runs.
    package var needsSettings: Bool { self != .installs && self != .examines }
    /// `true` if an agent is started after the command when the ledger has unfinished work.
    package var startsAgent: Bool { self != .examines && self != .ends }
}

/// A command with an effect on background work.
public protocol CommandWithEffect {
    /// The effect of this command with the given arguments.
    var effect: CommandEffect { get }
}
