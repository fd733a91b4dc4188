import ProcessSupport
import Foundation

/// What an agent waits for that cannot write its ledger. It stands in the agent's lock file, whose bytes lie on the disk before any trouble:
/// writing them again takes no space.
package struct AgentTrouble: Codable, Sendable, Equatable {
    package let reason: String
    package let since: Date
    package let nextTry: Date

    package init(reason: String, since: Date, nextTry: Date) {
        (self.reason, self.since, self.nextTry) = (reason, since, nextTry)
    }

    /// Bytes of the file that are spoken for.
    private static let size = 1_024

    /// Makes room for it, before there is any.
    package static func makeRoom(in lock: borrowing FileLock) {
        let zeros = [UInt8](repeating: 0, count: size)
        pwrite(lock.descriptor, zeros, size, 0)
    }

    /// - Parameter trouble: `nil`: there is none any more.
    package static func write(_ trouble: AgentTrouble?, into lock: borrowing FileLock) {
        var bytes = [UInt8](repeating: 0, count: size)
        if let trouble {
            let short = AgentTrouble(reason: String(trouble.reason.prefix(200)), since: trouble.since, nextTry: trouble.nextTry)
            guard let data = try? JSONEncoder().encode(short), data.count <= size else { return }
            bytes.replaceSubrange(0..<data.count, with: data)
        }
        pwrite(lock.descriptor, bytes, size, 0)
    }

    /// `nil`: an agent that runs has none.
    package static func read(_ directories: AppDirectories) -> AgentTrouble? {
        guard let data = FileManager.default.contents(atPath: directories.agentLock.path) else { return nil }
        return try? JSONDecoder().decode(AgentTrouble.self, from: data.prefix { $0 != 0 })
    }
}
