import BackgroundRuntime
import Synchronization

/// The background sessions of a process, one per identifier. On a test host, where launches share a process, one per launch too.
final class KnownSessions: ProcessBound {
    private struct Name: Hashable {
        let identifier: String
        let launch: Int64?
    }

    private struct Weak { weak var session: BackgroundSession? }

    private struct State {
        var all: [Name: Weak] = [:]
        /// Those with somebody to tell.
        var kept: [Name: BackgroundSession] = [:]
    }

    private let state = Mutex(State())

    func session(_ identifier: String, _ launch: Int64?, make: () -> BackgroundSession) -> BackgroundSession {
        state.withLock { state in
            let name = Name(identifier: identifier, launch: launch)
            if let session = state.all[name]?.session, session.state.withLock({ $0.life == .open }) {
                return session
            }
            let session = make()
            state.all[name] = Weak(session: session)
            return session
        }
    }

    private func name(_ session: BackgroundSession) -> Name { Name(identifier: session.identifier, launch: session.launch?.id) }

    func keep(_ session: BackgroundSession) { state.withLock { $0.kept[name(session)] = session } }

    func release(_ session: BackgroundSession) {
        let name = name(session)
        state.withLock { if $0.kept[name] === session { $0.kept[name] = nil } }
    }

    /// Whether another session was made under its name.
    func hasSuccessor(of session: BackgroundSession) -> Bool {
        state.withLock { state in state.all[name(session)]?.session.map { $0 !== session } ?? false }
    }

    func processEnded(launch: Int64) {
        let ended = state.withLock { state -> [BackgroundSession] in
            let names = state.all.keys.filter { $0.launch == launch }
            let sessions = names.compactMap { state.all[$0]?.session }
            for name in names { (state.all[name], state.kept[name]) = (nil, nil) }
            return sessions
        }
        for session in ended { session.abandon() }
    }
}
