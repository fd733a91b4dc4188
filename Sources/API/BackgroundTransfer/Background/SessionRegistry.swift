import BackgroundRuntime
import Synchronization

/// The background sessions of a process. At most one session per identifier is open. On a test host, at most one session per
/// identifier and launch is open, because all launches run in one process.
///
/// A session that was invalidated but still has tasks can exist at the same time as a new session with the same identifier.
final class SessionRegistry: ProcessBound {
    private struct Name: Hashable {
        let identifier: String
        let launch: Int64?
    }

    private struct Weak { weak var session: BackgroundSession? }

    private struct State {
        var all: [Name: Weak] = [:]
        /// The sessions that have a delegate or a handler to call.
        var kept: [Name: [BackgroundSession]] = [:]
    }

    private let state = Mutex(State())

    init() { _ = SessionLaunches.shared }

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

    private func name(_ session: BackgroundSession) -> Name {
        Name(identifier: session.identifier, launch: session.processNumber)
    }

    func add(_ session: BackgroundSession) {
        let name = name(session)
        state.withLock { state in
            guard state.kept[name]?.contains(where: { $0 === session }) != true else { return }
            state.kept[name, default: []].append(session)
        }
    }

    func release(_ session: BackgroundSession) {
        let name = name(session)
        state.withLock { state in
            state.kept[name]?.removeAll { $0 === session }
            if state.kept[name]?.isEmpty == true { state.kept[name] = nil }
        }
    }

    /// Returns the open session with this identifier that has a delegate.
    func listening(_ identifier: String, _ launch: Int64?) -> BackgroundSession? {
        let kept = state.withLock { $0.kept[Name(identifier: identifier, launch: launch), default: []] }
        return kept.first { $0.state.withLock { $0.life == .open && $0.delegate != nil } }
    }

    /// Returns the newer session with the same identifier, or `nil` if no newer session exists.
    func successor(of session: BackgroundSession) -> BackgroundSession? {
        state.withLock { state in state.all[name(session)]?.session.flatMap { $0 === session ? nil : $0 } }
    }

    /// Returns the transfers for which tasks of other session objects with the same identifier wait.
    func transfersOfOthers(than session: BackgroundSession) -> Set<Int64> {
        let others = state.withLock { $0.kept[name(session), default: []].filter { $0 !== session } }
        return others.reduce(into: []) { $0.formUnion($1.awaitedTransfers) }
    }

    /// Returns the numbers of the events, in all sessions of a process, whose last delegate method has returned.
    func returnedEnds(_ launch: Int64?) -> [Int64] {
        let sessions = state.withLock { state in state.kept.filter { $0.key.launch == launch }.flatMap(\.value) }
        return sessions.flatMap { $0.state.withLock { $0.calledEnds.filter(\.value.hasReturned).map(\.key) } }
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
