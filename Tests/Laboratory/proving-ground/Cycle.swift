import BackgroundTasks
import Foundation

/// A request that asks for itself again, until a file says that it is enough.
struct Cycle: Sendable {
    let number: Int
    let log: ProvingLog

    private var identifier: String { "cycle.\(number)" }
    private static let folder = ProcessInfo.processInfo.environment["PROVING_FOLDER"] ?? "/tmp"

    func run(_ task: BGTask) {
        // Held by this process alone, and gone with it: a second live launch of the request would find it taken.
        let lock = open("\(Self.folder)/\(identifier).lock", O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        if flock(lock, LOCK_EX | LOCK_NB) != 0 { log.write("overlap \(identifier) \(getpid())") }
        log.write("begin \(identifier) \(getpid())")
        if FileManager.default.fileExists(atPath: "\(Self.folder)/enough") {
            log.write("last \(identifier) \(getpid())")
        } else {
            do {
                try Self.submit(identifier)
                log.write("submitted \(identifier) \(getpid())")
            } catch {
                log.write("refused \(identifier) \(error)")
            }
        }
        task.setTaskCompleted(success: true)
    }

    static func submit(_ identifier: String) throws {
        try BGTaskScheduler.shared.submit(BGProcessingTaskRequest(identifier: identifier))
    }
}
