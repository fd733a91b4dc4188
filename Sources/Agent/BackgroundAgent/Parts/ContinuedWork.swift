import BackgroundLedger
import BackgroundScheduling
import Foundation

/// Work that a person began: it runs in the process that asked for it, and the agent gives it room. No state.
enum ContinuedWork {
    /// What waits for room goes with the process that holds its handler.
    static func dropOrphans(_ pass: Pass, _ neighbours: Neighbours) throws {
        for request in try pass.transaction.requests(of: .continuedProcessing) {
            if let host = request.host, !neighbours.hasEnded(host) { continue }
            try pass.transaction.deleteRequest(request.identifier)
        }
    }

    /// After the ends are settled: room may have come free.
    static func plan(_ pass: inout Pass) throws {
        let waiting = try pass.transaction.requests(of: .continuedProcessing)
        guard !waiting.isEmpty else { return }
        let running = try pass.transaction.liveLaunches().filter { $0.kind == .continuedProcessing }
        let chosen = ContinuedProcessing.startable(waiting.map(\.identifier), running: running.map(\.identifier))
        for request in waiting where chosen.contains(request.identifier) {
            var launch = LaunchRecord(
                kind: .continuedProcessing, identifier: request.identifier, requestToken: request.token, generation: 1,
                reason: "a person began it", simulated: false, servedOccurrence: nil, startedAt: pass.now)
            launch.pid = request.hostPID
            launch.hostStart = request.hostStart
            launch.title = request.title
            launch.subtitle = request.subtitle
            launch.askedAt = request.submittedAt
            launch.woke = "there was room"
            // No process of ours is started for it.
            _ = try pass.transaction.insert(launch)
            // The queue is free for the next of that name; whatever becomes of the launch, it is not repeated.
            try pass.transaction.deleteRequest(request.identifier)
            pass.log(.workGoesOn, (.identifier, request.identifier), (.pid, request.hostPID ?? 0))
        }
    }
}
