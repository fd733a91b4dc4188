import BackgroundTasks
import BackgroundTransfer
import Foundation
import Synchronization

/// Uploads that wait for a good moment: queued held, and released by a processing task, in the way of Zashi's sync. It runs on
/// external power with a network; that the network costs nothing it looks at itself.
package struct HeldUploads: Sendable {
    package static let identifier = "StormyUploads"

    /// Seconds until it looks again whether the network still costs money.
    private static let meteredDelay: Double = 900

    let store: StormyStore

    package init(store: StormyStore) { self.store = store }

    /// Asks for the next good moment. One request, however many photos wait.
    package static func submit(after delay: Double = 0) throws {
        let request = BGProcessingTaskRequest(identifier: identifier)
        request.requiresNetworkConnectivity = true
        request.requiresExternalPower = true
        if delay > 0 { request.earliestBeginDate = BGTaskScheduler.now.addingTimeInterval(delay) }
        try BGTaskScheduler.shared.submit(request)
    }

    /// The processing task: releases what is held and awaits it. Its expiration holds back what is not through (what the
    /// server has of it is kept) and asks for another moment.
    func run() async throws {
        let delivery = ReleasedUploads(store)
        let session = URLSession(configuration: PhotoUploads.configuration(), delegate: delivery, delegateQueue: nil)
        defer { session.finishTasksAndInvalidate() }
        // What a person paused is not ours to release, nor to wait for.
        let held = await session.allTasks.filter { $0.state == .suspended && !$0.isPausedByPerson }
        guard !held.isEmpty else { return }
        guard NetworkPath.current?.isMetered != true else { return again(after: Self.meteredDelay) }
        delivery.expect(held)
        await withTaskCancellationHandler {
            for task in held { task.resume() }
            await delivery.allEnded()
        } onCancel: {
            delivery.giveUp()
        }
        try delivery.trouble.check()
        try await delivery.tell()
        let left = delivery.left
        guard !left.isEmpty else { return }
        for task in left { task.suspend() }
        again(after: 0)
    }

    private func again(after delay: Double) {
        do {
            try Self.submit(after: delay)
        } catch {
            BGTaskScheduler.shared.failCurrentLaunch("held uploads cannot ask for another moment: \(error.localizedDescription)")
        }
    }
}

/// Takes note of ended photos, and knows which of those that were released are still on their way.
private final class ReleasedUploads: PhotoDelivery, @unchecked Sendable {  // because the lock guards what it adds
    private let onTheirWay = Mutex<[Int: URLSessionTask]>([:])
    private let end = LastEvent()

    var left: [URLSessionTask] { onTheirWay.withLock { Array($0.values) } }

    func expect(_ tasks: [URLSessionTask]) {
        onTheirWay.withLock { left in for task in tasks { left[task.taskIdentifier] = task } }
        // One that a person cancelled just now was told before it was expected.
        for task in tasks where task.state == .completed { hasEnded(task) }
    }

    func allEnded() async { await end.wait() }

    func giveUp() { end.came() }

    override func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        super.urlSession(session, task: task, didCompleteWithError: error)
        hasEnded(task)
    }

    /// Others of this session end, too: those were not released here.
    private func hasEnded(_ task: URLSessionTask) {
        let isLast = onTheirWay.withLock { $0.removeValue(forKey: task.taskIdentifier) != nil && $0.isEmpty }
        if isLast { end.came() }
    }
}
