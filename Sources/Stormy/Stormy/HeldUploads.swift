import BackgroundTasks
import BackgroundTransfer
import Foundation

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
        if delay > 0 { request.earliestBeginDate = Date(timeIntervalSinceNow: delay) }
        try BGTaskScheduler.shared.submit(request)
    }

    /// The processing task: releases what is held and awaits it. Its expiration holds back what is not through (what the
    /// server has of it is kept) and asks for another moment.
    func run() async throws {
        let delivery = AwaitedPhotos(store)
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
