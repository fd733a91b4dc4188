import BackgroundLedger
import BackgroundScheduling
import Foundation

/// Decides when continued processing can run. Continued processing is work that the user started and that runs in the process
/// that requested it. This type has no state.
enum ContinuedWork {
    /// Removes waiting requests whose process has ended, because the handler of such a request ended with the process.
    static func dropOrphans(_ pass: Pass, _ watchedProcesses: WatchedProcesses) throws {
        for request in try pass.transaction.requests(of: .continuedProcessing) {
            if let host = request.host, !watchedProcesses.hasEnded(host) { continue }
            try pass.transaction.deleteRequest(request.identifier)
        }
    }

    /// Starts waiting work. Call this method after ended launches are handled, because waiting work can start after a launch
    /// ended.
    static func plan(_ pass: inout Pass) throws {
        let waiting = try pass.transaction.requests(of: .continuedProcessing)
        guard !waiting.isEmpty else { return }
        let running = try pass.transaction.liveLaunches().filter { $0.kind == .continuedProcessing }
        let chosen = ContinuedProcessing.startable(waiting.map(\.identifier), running: running.map(\.identifier))
        for request in waiting where chosen.contains(request.identifier) {
            var request = request
            let commands = try pass.handle(.launched(isSimulated: false), &request)
            // The agent starts no process for this work, because the work runs in an existing process.
            let why = "the limit of running tasks allows another task"
            let launch = LaunchRecord(of: request, commands, woke: why, startedAt: pass.now)
            if let launch { _ = try pass.transaction.insert(launch) }
            pass.log(.workGoesOn, (.identifier, request.identifier), (.pid, request.host?.pid ?? 0))
        }
    }
}
