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
            var request = request
            let commands = try pass.handle(.launched(isSimulated: false), &request)
            // No process of ours is started for it.
            let launch = LaunchRecord(of: request, commands, woke: "there was room", startedAt: pass.now)
            if let launch { _ = try pass.transaction.insert(launch) }
            pass.log(.workGoesOn, (.identifier, request.identifier), (.pid, request.host?.pid ?? 0))
        }
    }
}
