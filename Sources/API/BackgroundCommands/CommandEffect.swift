/// What a command does to the background work of its app. It decides what happens before and after the command.
public enum CommandEffect: Sendable {
    /// It shows something. No ledger is made for it, and a ledger that cannot be written is copied to memory. An agent starts if work is left.
    case looks
    /// The command shows a summary of the background work, and lists the notifications that no desktop could show. Apart from that the effect
    /// equals ``looks``.
    case summarizes
    /// It changes something. An agent starts if work is left.
    case changes
    /// It is about the installation or the configuration, and depends on no setting. An agent starts if work is left.
    case installs
    /// It looks for mistakes, and depends on no setting. No agent starts.
    case examines
    /// It ends work, or is about the agent itself. No agent starts.
    case ends

    /// `true` if the command changes nothing.
    package var onlyLooks: Bool { self == .looks || self == .summarizes }
    /// Whether the settings of the app are read before the command.
    package var needsSettings: Bool { self != .installs && self != .examines }
    /// Whether an agent starts after the command if work is left.
    package var startsAgent: Bool { self != .examines && self != .ends }
}

/// A command with an effect on background work.
public protocol CommandWithEffect {
    /// What this command does, with the arguments that it was given.
    var effect: CommandEffect { get }
}
