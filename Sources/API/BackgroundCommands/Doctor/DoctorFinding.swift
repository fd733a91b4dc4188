import Foundation

/// A finding of `doctor`: the name of a check, the status of the check, and an optional fix.
public struct DoctorFinding: Encodable, Sendable {
    /// The status of a check.
    public enum Status: String, Encodable, Sendable {
        /// The check passed.
        case ok
        /// The check passed, but the state may be unexpected for the user or may soon become a problem.
        case warning
        /// The check failed.
        case failed
    }

    /// A shell command that corrects the problem. The user can type the command unchanged.
    public struct Fix: Sendable {
        /// The shell command.
        public var command: String
        /// A Boolean value that indicates whether `doctor --fix` runs the command. A command is not safe if it removes something,
        /// uses the rights of another user, or requires a decision of the user.
        public var isSafe: Bool

        /// Creates a fix.
        public init(_ command: String, isSafe: Bool = false) { (self.command, self.isSafe) = (command, isSafe) }
    }

    /// The name of the check. The name consists of lower-case words with hyphens, and does not change between versions.
    public var check: String
    /// The status of the check.
    public var status: Status
    /// A sentence for the user, without secrets.
    public var message: String
    /// The fix, or `nil` if the check found no problem or no command can correct the problem.
    public var fix: Fix?

    /// Creates a finding.
    public init(_ check: String, _ status: Status, _ message: String, fix: Fix? = nil) {
        (self.check, self.status, self.message, self.fix) = (check, status, message, fix)
    }

    private enum CodingKeys: CodingKey { case check, status, message, fix }

    /// Encodes the finding as `{check, status, message, fix}`. If the finding has no fix, the value is `null`.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(check, forKey: .check)
        try container.encode(status, forKey: .status)
        try container.encode(message, forKey: .message)
        try container.encode(OrNull(fix?.command), forKey: .fix)
    }
}

/// An examination of one area that background work depends on. An examination changes nothing.
protocol Examination: Sendable {
    func findings(_ app: ExaminedApp) -> [DoctorFinding]
}
