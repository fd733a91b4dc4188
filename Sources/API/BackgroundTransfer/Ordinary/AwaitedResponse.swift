import Synchronization

/// A result that one Swift task awaits. Only the first result is used.
final class AwaitedResponse: Sendable {
    private enum State {
        case open
        case awaited(CheckedContinuation<Void, any Error>)
        case given((any Error)?)
    }

    private let state = Mutex(State.open)

    /// - Parameter error: `nil` for success.
    func resume(_ error: (any Error)?) {
        let waiting = state.withLock { state -> CheckedContinuation<Void, any Error>? in
            if case .given = state { return nil }
            defer { state = .given(error) }
            if case .awaited(let continuation) = state { return continuation }
            return nil
        }
        if let error { waiting?.resume(throwing: error) } else { waiting?.resume() }
    }

    func wait() async throws {
        try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
            let given = state.withLock { state -> (any Error)?? in
                if case .given(let error) = state { return .some(error) }
                state = .awaited(continuation)
                return nil
            }
            guard let given else { return }
            if let given { continuation.resume(throwing: given) } else { continuation.resume() }
        }
    }
}
