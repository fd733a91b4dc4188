import Foundation

/// One row of `doctor`: a promise, whether it is kept, and what helps where it is not.
public struct DoctorFinding: Encodable, Sendable {
    /// How the promise stands.
    public enum Status: String, Encodable, Sendable {
        /// It is kept.
        case ok
        /// It is kept, but not as a person would expect, or not for long.
        case warning
        /// It cannot be kept.
        case failed
    }

    /// What helps: one line for a shell, to be typed as it stands.
    public struct Fix: Sendable {
        /// The line.
        public var command: String
        /// `doctor --fix` runs it. Not what removes something, takes the rights of somebody else, or is a person's to decide.
        public var isSafe: Bool

        /// A line that helps.
        public init(_ command: String, isSafe: Bool = false) { (self.command, self.isSafe) = (command, isSafe) }
    }

    /// Names the promise: lower-case words with hyphens, the same in every version.
    public var check: String
    /// How it stands.
    public var status: Status
    /// One sentence for a person, without secrets.
    public var message: String
    /// `nil`: nothing that a command could do, or nothing to do.
    public var fix: Fix?

    /// A row.
    public init(_ check: String, _ status: Status, _ message: String, fix: Fix? = nil) {
        (self.check, self.status, self.message, self.fix) = (check, status, message, fix)
    }

    private enum CodingKeys: CodingKey { case check, status, message, fix }

    /// As `{check, status, message, fix}`; a fix that there is not is `null`.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(check, forKey: .check)
        try container.encode(status, forKey: .status)
        try container.encode(message, forKey: .message)
        try container.encode(OrNull(fix?.command), forKey: .fix)
    }
}

/// Looks at one part of what an app needs, and changes nothing.
protocol Examination: Sendable {
    func findings(_ app: ExaminedApp) -> [DoctorFinding]
}
