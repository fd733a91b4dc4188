import BackgroundRuntime
import BackgroundTransfer
import Foundation
import Synchronization

/// Asks the server of a destination which photos it has. The photos are copied and cleaned as for an upload, and the agent sends
/// only requests that do not change the server.
struct PhotoServerCheck {
    enum Finding: Equatable {
        /// The server has a file with equal content. The value is the transfer of the check.
        case there(BackgroundTransferStatus)
        case absent
        /// The server could not be asked, or does not show which files it has. The text contains the reason.
        case unknown(String)
    }

    /// The number of seconds without progress after which the check ends, if requests wait.
    private static let patience = 10
    /// The number of seconds without a finished request after which the check ends, if a request waited in this time.
    private static let longestPatience = 60

    private let sessions: PhotoSessions
    private let destination: PhotoDestination

    init(_ sessions: PhotoSessions, _ destination: PhotoDestination) {
        (self.sessions, self.destination) = (sessions, destination)
    }

    /// - Returns: A finding for each photo, in the order of the photos. `isStuck` is `true` if the check ended early.
    func run(
        _ photos: [PhotoUploads.Prepared], onChange: @escaping @Sendable (BackgroundTransfers.Tally) -> Void
    ) async throws -> (findings: [Finding], isStuck: Bool) {
        let tasks = photos.map(\.task)
        sessions.session(for: destination).resume(tasks)
        let numbers = tasks.compactMap(\.transferNumber)
        if !numbers.isEmpty { try await follow(numbers, onChange) }
        let ended = Dictionary(uniqueKeysWithValues: try BackgroundTransfers.statuses(of: numbers).map { ($0.id, $0) })
        let unfinished = numbers.filter { ended[$0]?.state.hasEnded != true }
        if !unfinished.isEmpty { try BackgroundTransfers.perform(.cancel, on: .ids(Set(unfinished))) }
        let findings = tasks.map { task -> Finding in
            guard let number = task.transferNumber, let status = ended[number] else {
                task.discardSnapshot()
                return .unknown(task.error?.localizedDescription ?? "the question could not be queued")
            }
            return Self.finding(status)
        }
        return (findings, !unfinished.isEmpty)
    }

    private static func finding(_ status: BackgroundTransferStatus) -> Finding {
        switch status.state {
        case .completed:
            .there(status)
        case .failed where status.trouble?.code == URLError.Code.fileDoesNotExist.rawValue: .absent
        case .failed, .cancelled, .queued, .running, .waiting, .paused:
            .unknown(status.trouble?.message ?? "the server did not respond in time")
        }
    }

    /// Waits until all checks have ended, or until the remaining checks only wait.
    private func follow(
        _ numbers: [Int64], _ onChange: @escaping @Sendable (BackgroundTransfers.Tally) -> Void
    ) async throws {
        let last = Latest()
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                _ = try await BackgroundTransfers.follow(numbers, untilReported: true) { tally in
                    last.record(tally)
                    onChange(tally)
                }
            }
            group.addTask {
                let runtime = AppRuntime.ofWork
                var quiet = 0
                while quiet < Self.patience, !last.isHopeless(after: Self.longestPatience), !Task.isCancelled {
                    await runtime.pause(for: 1)
                    quiet = last.isQuiet() ? quiet + 1 : 0
                }
            }
            defer { group.cancelAll() }
            try await group.next()
        }
    }

    /// The last progress of the checks.
    private final class Latest: Sendable {
        private struct State {
            var tally: BackgroundTransfers.Tally?
            /// `true` if a request waits, and there was no progress since the last question.
            var isQuiet = false
            /// The number of questions since a request ended, and whether a request waited since then.
            var (questions, hasWaited) = (0, false)
        }

        private let state = Mutex(State())

        func record(_ tally: BackgroundTransfers.Tally) {
            state.withLock { state in
                let isProgress = state.tally.map { $0.unfinished != tally.unfinished || $0.bytesDone != tally.bytesDone } ?? true
                if isProgress || tally.waitingMessage == nil { state.isQuiet = false }
                if tally.unfinished != state.tally?.unfinished { (state.questions, state.hasWaited) = (0, false) }
                if tally.waitingMessage != nil { state.hasWaited = true }
                state.tally = tally
            }
        }

        func isHopeless(after questions: Int) -> Bool {
            state.withLock { $0.hasWaited && $0.questions >= questions }
        }

        func isQuiet() -> Bool {
            state.withLock { state in
                state.questions += 1
                defer { state.isQuiet = state.tally?.waitingMessage != nil }
                return state.isQuiet
            }
        }
    }
}
