import Foundation
import NIOCore
import ServerScripts
import Synchronization

/// The server's record of requests. The event loop writes the record. Any thread can read the record or wait for a change.
final class RequestLog: Sendable {
    private struct Waiter {
        /// Checks the condition of a waiting call. If the condition is true, resumes the call and returns `true`.
        let isServed: (ServerActivity) -> Bool
        let fail: (any Error) -> Void
        let timer: Scheduled<Void>
    }

    private struct State {
        var activity = ServerActivity()
        var waiters: [Int: Waiter] = [:]
        var nextWaiter = 0
        var isFinished = false
        var file: FileHandle?
    }

    private let state: Mutex<State>
    private let eventLoop: any EventLoop

    /// Creates a log. If a path is given, a JSON line is appended to the file when a request arrives, and another line when the
    /// request ends. If several lines have the same id, the last line is valid. If the server is killed, its open requests are
    /// therefore in the file.
    init(eventLoop: any EventLoop, file path: String?) throws {
        self.eventLoop = eventLoop
        var file: FileHandle?
        if let path {
            if !FileManager.default.fileExists(atPath: path) {
                _ = FileManager.default.createFile(atPath: path, contents: nil)
            }
            file = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
            try file?.seekToEnd()
        }
        var initial = State()
        initial.file = file
        state = Mutex(initial)
    }

    var activity: ServerActivity { state.withLock { $0.activity } }

    // MARK: Writing

    func connectionOpened() -> Int {
        change {
            $0.connectionsAccepted += 1
            $0.connectionsOpen += 1
            return $0.connectionsAccepted
        }
    }

    func connectionClosed() {
        change { $0.connectionsOpen -= 1 }
    }

    /// Records the headers of a request. The number of the request is its id.
    func received(connection: Int, method: String, uri: String, headers: HeaderList) -> RecordedRequest {
        let request = change {
            $0.receive(connection: connection, method: method, uri: uri, headers: headers, at: Date())
        }
        append(request)
        return request
    }

    /// Changes the record of a request, and appends the record to the file when the request has ended.
    func update(_ id: Int, _ body: (inout RecordedRequest) -> Void) {
        let ended: RecordedRequest? = change { activity in
            let before = activity.requests[id - 1].outcome
            activity.change(id, body)
            let after = activity.requests[id - 1]
            return before == .open && after.outcome != .open ? after : nil
        }
        if let ended { append(ended) }
    }

    /// Records that no more events follow. All waiting calls fail.
    func finish() {
        state.withLock { state in
            state.isFinished = true
            for waiter in state.waiters.values {
                waiter.timer.cancel()
                waiter.fail(WaitFailure.serverStopped(summary: state.activity.summary))
            }
            state.waiters = [:]
            try? state.file?.close()
            state.file = nil
        }
    }

    private func change<R>(_ body: (inout ServerActivity) -> R) -> R {
        state.withLock { state in
            let result = body(&state.activity)
            for (number, waiter) in state.waiters where waiter.isServed(state.activity) {
                waiter.timer.cancel()
                state.waiters[number] = nil
            }
            return result
        }
    }

    private func append(_ request: RecordedRequest) {
        let encoder = JSONEncoder()
        encoder.dateEncodingStrategy = .iso8601
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        state.withLock { state in
            guard let file = state.file, var line = try? encoder.encode(request) else { return }
            line.append(UInt8(ascii: "\n"))
            try? file.write(contentsOf: line)
        }
    }

    // MARK: Waiting

    /// Returns the first value other than `nil` that `select` returns for the activity, now or after a later event. `select` must
    /// not call the server, because `select` runs under the log's lock.
    func wait<Value: Sendable>(
        timeout: Duration, for select: @escaping @Sendable (ServerActivity) -> Value?
    ) async throws -> Value {
        let number = state.withLock { state in
            state.nextWaiter += 1
            return state.nextWaiter
        }
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                enroll(number, continuation, timeout: timeout, select)
            }
        } onCancel: {
            self.fail(number) { _ in CancellationError() }
        }
    }

    private func enroll<Value: Sendable>(
        _ number: Int, _ continuation: CheckedContinuation<Value, any Error>, timeout: Duration,
        _ select: @escaping @Sendable (ServerActivity) -> Value?
    ) {
        state.withLock { state in
            if let value = select(state.activity) {
                continuation.resume(returning: value)
            } else if state.isFinished {
                continuation.resume(throwing: WaitFailure.serverStopped(summary: state.activity.summary))
            } else if Task.isCancelled {
                continuation.resume(throwing: CancellationError())
            } else {
                // The timer is scheduled under the lock, so `finish` cannot run before the timer exists, and the event loop still
                // runs.
                let timer = eventLoop.scheduleTask(in: TimeAmount(timeout)) {
                    self.fail(number) { WaitFailure.timedOut(summary: $0.summary) }
                }
                state.waiters[number] = Waiter(
                    isServed: { activity in
                        guard let value = select(activity) else { return false }
                        continuation.resume(returning: value)
                        return true
                    },
                    fail: { continuation.resume(throwing: $0) },
                    timer: timer)
            }
        }
    }

    private func fail(_ number: Int, with error: (ServerActivity) -> any Error) {
        state.withLock { state in
            guard let waiter = state.waiters.removeValue(forKey: number) else { return }
            waiter.timer.cancel()
            waiter.fail(error(state.activity))
        }
    }
}
