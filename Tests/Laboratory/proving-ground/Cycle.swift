import BackgroundTasks
import Foundation

/// A request whose handler submits the request again, until the file `enough` exists.
struct Cycle: Sendable {
    let number: Int
    let log: ProvingLog

    private var identifier: String { "cycle.\(number)" }
    private static let folder = ProcessInfo.processInfo.environment["PROVING_FOLDER"] ?? "/tmp"

    func run(_ task: BGTask) {
        // Only this process holds the lock, and the lock is released when the process ends. If a second launch of the request
        // were running, it could not get the lock.
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
