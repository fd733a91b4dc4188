import ProcessSupport
import Foundation

/// The reason why an agent cannot write to its database (ledger), and the time of the next try. The agent stores the value in its
/// lock file. The space in this file is allocated in advance, so that the agent can store the value even if the disk is full.
package struct AgentTrouble: Codable, Sendable, Equatable {
    package let reason: String
    package let since: Date
    package let nextTry: Date

    package init(reason: String, since: Date, nextTry: Date) {
        (self.reason, self.since, self.nextTry) = (reason, since, nextTry)
    }

    /// The number of bytes of the lock file that are reserved for the value.
    private static let size = 1_024

    /// Allocates space for an ``AgentTrouble`` in the lock file.
    package static func makeRoom(in lock: borrowing FileLock) {
        let zeros = [UInt8](repeating: 0, count: size)
        pwrite(lock.descriptor, zeros, size, 0)
    }

    /// Stores the reason in the lock file.
    ///
    /// - Parameter trouble: the reason, or `nil` if the agent can write to its ledger again.
    package static func write(_ trouble: AgentTrouble?, into lock: borrowing FileLock) {
        var bytes = [UInt8](repeating: 0, count: size)
        if let trouble {
            let short = AgentTrouble(reason: String(trouble.reason.prefix(200)), since: trouble.since, nextTry: trouble.nextTry)
            guard let data = try? JSONEncoder().encode(short), data.count <= size else { return }
            bytes.replaceSubrange(0..<data.count, with: data)
        }
        pwrite(lock.descriptor, bytes, size, 0)
    }

    /// Returns the stored reason, or `nil` if a running agent can write to its ledger.
    package static func read(_ directories: AppDirectories) -> AgentTrouble? {
        guard let data = FileManager.default.contents(atPath: directories.agentLock.path) else { return nil }
        return try? JSONDecoder().decode(AgentTrouble.self, from: data.prefix { $0 != 0 })
    }
}
