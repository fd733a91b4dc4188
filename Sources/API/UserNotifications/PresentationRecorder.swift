import BackgroundLedger
import BackgroundNotices
import BackgroundRuntime
import Foundation
import Synchronization

/// Writes the decisions of delegates to the ledger. All decisions that arrive during a write are written together in the next
/// commit. An app that adds a thousand notifications therefore does not wait a thousand times for the disk.
final class PresentationRecorder: Sendable {
    static var shared: PresentationRecorder { AppRuntime.shared.part { PresentationRecorder() } }

    private struct Decision {
        let identifier: String
        let revision: Int
        let wish: NoticePresentation
        let whoWaits: CheckedContinuation<Void, Never>
    }

    private struct State {
        var decisions: [Decision] = []
        var isWriting = false
    }

    private let state = Mutex(State())

    /// Writes a decision, and waits until it is on the disk. If the write fails temporarily, waits only until ``DurableWrites``
    /// has queued a retry.
    func record(_ identifier: String, revision: Int, _ wish: NoticePresentation) async {
        await withCheckedContinuation { whoWaits in
            let begins = state.withLock { state in
                state.decisions.append(Decision(identifier: identifier, revision: revision, wish: wish, whoWaits: whoWaits))
                defer { state.isWriting = true }
                return !state.isWriting
            }
            // The write runs in a Swift task, because a Swift task inherits the simulated process of a test host.
            if begins { Task { self.write() } }
        }
    }

    private func write() {
        while let decisions = next() {
            let (meant, now) = (decisions.map { ($0.identifier, $0.revision, $0.wish) }, AppRuntime.shared.now)
            DurableWrites.shared.commit("the presentation of a notification") { transaction in
                for (identifier, revision, wish) in meant {
                    try transaction.applyPresentation(identifier, revision: revision, wish, now: now, zone: .current)
                }
            }
            for decision in decisions { decision.whoWaits.resume() }
        }
    }

    /// Returns the decisions that wait to be written, or `nil` if no decision waits.
    private func next() -> [Decision]? {
        state.withLock { state in
            defer { state.decisions = [] }
            state.isWriting = !state.decisions.isEmpty
            return state.decisions.isEmpty ? nil : state.decisions
        }
    }
}
