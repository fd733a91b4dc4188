import Foundation
import Synchronization

extension LaunchContext {
    /// Waits half a second, or longer on a busy computer. During this time, code of the app that runs after a task is complete
    /// can, for example, submit the next task.
    ///
    /// On a test host, the method yields several times instead, also on the main actor. The method also makes a few short pauses,
    /// because other programs may delay the thread that runs the app's code. Virtual time does not pass during the call.
    package static func graceAfterResult() async {
        let runtime = AppRuntime.shared
        guard runtime.isHosted else {
            for _ in 0..<50 { await pause(0.01) }
            return
        }
        let activity = runtime.part { HostedActivity() }
        activity.enter()
        defer { activity.leave() }
        for turn in 0..<50 {
            if turn.isMultiple(of: 10) {
                await pause(0.0005)
                // After this call, all work that was enqueued on the main actor earlier has run, even if the main thread is slow.
                await MainActor.run {}
                // After this call, earlier work of Swift tasks without an actor has run.
                await Task.detached {}.value
            } else {
                await Task.yield()
            }
            runtime.reportActivity()
        }
    }

    private static func pause(_ seconds: Double) async {
        await withCheckedContinuation { continuation in
            DispatchQueue.global().asyncAfter(deadline: .now() + seconds) { continuation.resume() }
        }
    }
}

/// The running launches on a test host.
final class HostedLaunches: Sendable {
    private let living = Mutex<[LaunchContext]>([])

    var only: LaunchContext? { living.withLock { $0.count == 1 ? $0[0] : nil } }

    func contains(_ context: LaunchContext) -> Bool { living.withLock { $0.contains { $0 === context } } }

    func add(_ context: LaunchContext) { living.withLock { $0.append(context) } }

    func remove(_ context: LaunchContext) { living.withLock { $0.removeAll { $0 === context } } }
}
