import BackgroundCommands
import Dispatch
import Foundation
import Glibc
import ProcessSupport
import Synchronization

/// The temporary folders and homes of this process. The folders and homes are removed at the end, even if the process is
/// interrupted. At the end, all processes that run in the homes are also ended.
final class Cleanup: Sendable {
    static let shared = Cleanup()

    private struct State {
        var isInterrupted = false
        /// The paths of the folders.
        var folders: Set<String> = []
        var homes: [ObjectIdentifier: ThrowawayHome] = [:]
    }

    private let state = Mutex(State())

    private init() {}

    /// Creates a folder with a unique name.
    ///
    /// - Parameters:
    ///   - name: The beginning of the folder's name.
    ///   - parent: The folder in which the new folder is kept at the end; `nil` if the new folder is removed at the end.
    /// - Throws: ``CommandFailure``, which contains the path. If this process was interrupted, the method does not return.
    func makeFolder(_ name: String, keptIn parent: URL? = nil) throws -> URL {
        let place = parent ?? FileManager.default.temporaryDirectory
        let template = place.appendingPathComponent("\(name)-XXXXXX").path
        // The folder is created and registered under one lock, so that an interruption cannot come between the two steps.
        let made = state.withLock { state -> Result<URL, CommandFailure>? in
            if state.isInterrupted { return nil }
            var path = Array(template.utf8CString)
            guard mkdtemp(&path) != nil else {
                let reason = String(cString: strerror(errno))
                return .failure(CommandFailure(.cannotCreate, "no folder can be created in \(place.path): \(reason)"))
            }
            let folder = URL(fileURLWithPath: String(decoding: path.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self))
            if parent == nil { state.folders.insert(folder.path) }
            return .success(folder)
        }
        guard let made else { Self.park() }
        return try made.get()
    }

    /// Removes a folder immediately.
    func remove(_ folder: URL) {
        Self.removeForGood(folder.path)
        state.withLock { _ = $0.folders.remove(folder.path) }
    }

    /// Registers a home in which processes may run from now on. If this process was interrupted, the method does not return.
    func add(_ home: ThrowawayHome) {
        let isTooLate = state.withLock { state -> Bool in
            if !state.isInterrupted { state.homes[ObjectIdentifier(home)] = home }
            return state.isInterrupted
        }
        if isTooLate { Self.park() }
    }

    /// Removes a home from the register, because no process runs in the home any more.
    func forget(_ home: ThrowawayHome) { state.withLock { _ = $0.homes.removeValue(forKey: ObjectIdentifier(home)) } }

    // MARK: Interruptions

    /// Blocks a thread that would start a process or end this process during the removal. The thread that removes the folders
    /// also ends this process.
    static func park() -> Never { while true { pause() } }

    /// Handles Ctrl-C (SIGINT), SIGTERM and a closed terminal (SIGHUP) as long as the returned sources exist. After a signal, all
    /// folders and homes are removed, and this process ends with the exit code for the signal.
    func watchForInterruptions() -> [any DispatchSourceSignal] {
        // All signals share one queue, so that a second signal does not interrupt the removal.
        let queue = DispatchQueue(label: "interrupt")
        return [SIGINT, SIGTERM, SIGHUP].map { number -> any DispatchSourceSignal in
            signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number, queue: queue)
            source.setEventHandler { @Sendable in
                Cleanup.shared.takeAway()
                ProcessExit.end(128 + number)
            }
            source.activate()
            return source
        }
    }

    private func takeAway() {
        let (homes, folders) = state.withLock { state -> ([ThrowawayHome], Set<String>) in
            state.isInterrupted = true
            return (Array(state.homes.values), state.folders)
        }
        // The homes are ended in parallel, because each home waits for the end of its agent.
        let ended = DispatchSemaphore(value: 0)
        for home in homes {
            let thread = Thread {
                home.end()
                ended.signal()
            }
            thread.start()
        }
        for _ in homes { ended.wait() }
        for folder in folders { Self.removeForGood(folder) }
    }

    private static func removeForGood(_ folder: String) {
        // The removal fails if another thread of this process writes into the folder at the same time.
        for _ in 0..<50 {
            try? FileManager.default.removeItem(atPath: folder)
            if access(folder, F_OK) != 0 { return }
            usleep(20_000)
        }
    }
}
