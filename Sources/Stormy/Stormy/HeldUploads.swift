import BackgroundTasks
import BackgroundTransfer
import Foundation
import Synchronization

/// Uploads that wait for external power and an unmetered network. The uploads are queued as suspended, and a processing task
/// resumes the uploads. The app Zashi also syncs with such a task. The request of the processing task requires external power and
/// a network. The task itself checks whether the network is metered.
package struct HeldUploads: Sendable {
    package static let identifier = "StormyUploads"

    /// The number of seconds until the task checks again whether the network is metered.
    private static let meteredDelay: Double = 900

    let store: StormyStore

    package init(store: StormyStore) { self.store = store }

    /// Submits the request of the processing task. One request is sufficient for any number of photos.
    package static func submit(after delay: Double = 0) throws {
        let request = BGProcessingTaskRequest(identifier: identifier)
        request.requiresNetworkConnectivity = true
        request.requiresExternalPower = true
        if delay > 0 { request.earliestBeginDate = BGTaskScheduler.now.addingTimeInterval(delay) }
        try BGTaskScheduler.shared.submit(request)
    }

    /// Runs the processing task: resumes the suspended uploads and waits until they have ended. When the task expires, unfinished
    /// uploads are suspended again and another task is requested. The server keeps the bytes that it has received.
    func run() async throws {
        let delivery = ReleasedUploads(store)
        let session = URLSession(configuration: PhotoUploads.configuration(), delegate: delivery, delegateQueue: nil)
        defer { session.finishTasksAndInvalidate() }
        // Uploads that the user paused are not resumed and not awaited.
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
        try await delivery.show()
        let left = delivery.left
        guard !left.isEmpty else { return }
        for task in left { task.suspend() }
        again(after: 0)
    }

    private func again(after delay: Double) {
        do {
            try Self.submit(after: delay)
        } catch {
            BGTaskScheduler.shared.failCurrentLaunch(
                "the next launch for waiting photos could not be requested: \(error.localizedDescription)")
        }
    }
}

/// Records photos whose upload ended, and keeps a list of the resumed uploads that are not complete yet.
private final class ReleasedUploads: PhotoDelivery, @unchecked Sendable {  // because locks guard all added values
    private let onTheirWay = Mutex<[Int: URLSessionTask]>([:])
    /// Tasks that have ended and whose result is not stored yet.
    private let unrecorded = Mutex<[URLSessionTask]>([])
    private let end = LastEvent()

    var left: [URLSessionTask] { onTheirWay.withLock { Array($0.values) } }

    func expect(_ tasks: [URLSessionTask]) {
        onTheirWay.withLock { left in for task in tasks { left[task.taskIdentifier] = task } }
        // The event of an upload that the user has just cancelled may have been delivered before `expect(_:)`.
        for task in tasks where task.state == .completed { hasEnded(task) }
    }

    func allEnded() async { await end.wait() }

    func giveUp() { end.came() }

    override func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        super.urlSession(session, task: task, didCompleteWithError: error)
        unrecorded.withLock { $0.append(task) }
    }

    override func recordDeliveredEnds() {
        let tasks = unrecorded.withLock { tasks in
            defer { tasks = [] }
            return tasks
        }
        super.recordDeliveredEnds()
        for task in tasks { hasEnded(task) }
    }

    /// Records that a resumed upload has ended. Other uploads of the session are ignored.
    private func hasEnded(_ task: URLSessionTask) {
        let isLast = onTheirWay.withLock { $0.removeValue(forKey: task.taskIdentifier) != nil && $0.isEmpty }
        if isLast { end.came() }
    }
}
