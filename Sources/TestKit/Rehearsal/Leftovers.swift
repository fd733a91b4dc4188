import BackgroundCommands
import Dispatch
import Foundation
import Glibc
import ProcessSupport
import Synchronization

/// What this process made for a while and has to take away again, also when it is interrupted half-way: folders, and homes with the
/// processes that run in them.
final class Leftovers: Sendable {
    static let shared = Leftovers()

    private struct State {
        var isInterrupted = false
        /// Paths.
        var folders: Set<String> = []
        var homes: [ObjectIdentifier: ThrowawayHome] = [:]
    }

    private let state = Mutex(State())

    private init() {}

    /// Makes a folder with a name that nobody has.
    ///
    /// - Parameters:
    ///   - name: what its name begins with.
    ///   - parent: kept there when all is over; `nil`: gone then.
    /// - Throws: ``CommandFailure`` that names the place. Does not return once this process was interrupted.
    func makeFolder(_ name: String, keptIn parent: URL? = nil) throws -> URL {
        let place = parent ?? FileManager.default.temporaryDirectory
        let template = place.appendingPathComponent("\(name)-XXXXXX").path
        // Made and remembered in one step: an interruption comes before or after it.
        let made = state.withLock { state -> Result<URL, CommandFailure>? in
            if state.isInterrupted { return nil }
            var path = Array(template.utf8CString)
            guard mkdtemp(&path) != nil else {
                let reason = String(cString: strerror(errno))
                return .failure(CommandFailure(.cannotCreate, "\(place.path): no folder can be made there: \(reason)"))
            }
            let folder = URL(fileURLWithPath: String(decoding: path.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self))
            if parent == nil { state.folders.insert(folder.path) }
            return .success(folder)
        }
        guard let made else { Self.park() }
        return try made.get()
    }

    /// Removes a folder now.
    func remove(_ folder: URL) {
        Self.removeForGood(folder.path)
        state.withLock { _ = $0.folders.remove(folder.path) }
    }

    /// From here on something may run in that home. Does not return once this process was interrupted.
    func add(_ home: ThrowawayHome) {
        let isTooLate = state.withLock { state -> Bool in
            if !state.isInterrupted { state.homes[ObjectIdentifier(home)] = home }
            return state.isInterrupted
        }
        if isTooLate { Self.park() }
    }

    /// Nothing runs there any more.
    func forget(_ home: ThrowawayHome) { state.withLock { _ = $0.homes.removeValue(forKey: ObjectIdentifier(home)) } }

    // MARK: Interruptions

    /// For a thread that would begin something, or end the process, while everything is taken away: whoever takes it away ends the
    /// process.
    static func park() -> Never { while true { pause() } }

    /// As long as these live, Ctrl-C, SIGTERM and the end of the terminal take everything away, and then end this process with the
    /// code of a process that such a signal ended.
    func watchForInterruptions() -> [any DispatchSourceSignal] {
        // One queue: a second signal does not cut the first one's work short.
        let queue = DispatchQueue(label: "interrupt")
        return [SIGINT, SIGTERM, SIGHUP].map { number -> any DispatchSourceSignal in
            signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number, queue: queue)
            source.setEventHandler { @Sendable in
                Leftovers.shared.takeAway()
                ProcessExit.leave(128 + number)
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
        // Side by side: each waits for an agent.
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
        // A thread of ours may be writing there in this moment, which makes it fail.
        for _ in 0..<50 {
            try? FileManager.default.removeItem(atPath: folder)
            if access(folder, F_OK) != 0 { return }
            usleep(20_000)
        }
    }
}
