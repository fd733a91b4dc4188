import BackgroundCommands
import Dispatch
import Foundation
import Glibc
import ProcessSupport
import Synchronization

/// The temporary folders and homes of this process, which have to be removed even if the process is interrupted. At the end, all
/// processes that run in the homes are ended.
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
    ///   - name: the beginning of the folder's name.
    ///   - parent: the folder that keeps the new folder afterwards; `nil` if the new folder is removed.
    /// - Throws: ``CommandFailure`` that names the place. Does not return after this process was interrupted.
    func makeFolder(_ name: String, keptIn parent: URL? = nil) throws -> URL {
        let place = parent ?? FileManager.default.temporaryDirectory
        let template = place.appendingPathComponent("\(name)-XXXXXX").path
        // The folder is created and registered in one step, so that an interruption comes before or after both.
        let made = state.withLock { state -> Result<URL, CommandFailure>? in
            if state.isInterrupted { return nil }
            var path = Array(template.utf8CString)
            guard mkdtemp(&path) != nil else {
                let reason = String(cString: strerror(errno))
                return .failure(CommandFailure(.cannotCreate, "\(place.path): no folder can be created there: \(reason)"))
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

    /// Registers a home in which processes may run from now on. Does not return after this process was interrupted.
    func add(_ home: ThrowawayHome) {
        let isTooLate = state.withLock { state -> Bool in
            if !state.isInterrupted { state.homes[ObjectIdentifier(home)] = home }
            return state.isInterrupted
        }
        if isTooLate { Self.park() }
    }

    /// Removes a home from the register, because no process runs in it any more.
    func forget(_ home: ThrowawayHome) { state.withLock { _ = $0.homes.removeValue(forKey: ObjectIdentifier(home)) } }

    // MARK: Interruptions

    /// Blocks a thread that would start something or end the process during the removal. The thread that removes everything also ends the
    /// process.
    static func park() -> Never { while true { pause() } }

    /// Handles Ctrl-C, SIGTERM and the end of the terminal as long as the returned sources exist. A signal removes everything and ends this
    /// process with the exit code for that signal.
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
        // The homes end in parallel, because each end waits for an agent.
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
        // Another thread of this process may write into the folder at this moment, which makes the removal fail.
        for _ in 0..<50 {
            try? FileManager.default.removeItem(atPath: folder)
            if access(folder, F_OK) != 0 { return }
            usleep(20_000)
        }
    }
}
