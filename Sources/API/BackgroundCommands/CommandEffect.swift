/// The effect of a command on the background work of its app. The effect decides what happens before and after the command.
public enum CommandEffect: Sendable {
    /// The command shows something. A ledger is not created for it, and a ledger that cannot be written is copied to memory. An
    /// agent starts if work is left.
    case reads
    /// The command shows a summary of the background work, and lists the notifications that no desktop could show. Otherwise, the
    /// effect equals ``reads``.
    case summarizes
    /// The command changes something. An agent starts if work is left.
    case changes
    /// The command concerns the installation or the configuration, and depends on no setting. An agent starts if work is left.
    case installs
    /// The command examines the app for problems, and depends on no setting. An agent is not started.
    case examines
    /// The command ends work, or concerns the agent itself. An agent is not started.
    case ends

    /// `true` if the command changes nothing.
    package var changesNothing: Bool { self == .reads || self == .summarizes }
    /// `true` if the settings of the app are read before the command.
    package var needsSettings: Bool { self != .installs && self != .examines }
    /// `true` if an agent starts after the command when work is left.
    package var startsAgent: Bool { self != .examines && self != .ends }
}

/// A command with an effect on background work.
public protocol CommandWithEffect {
    /// The effect of this command with its arguments.
    var effect: CommandEffect { get }
}
