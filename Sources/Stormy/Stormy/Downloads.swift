import BackgroundTransfer
import Foundation
import UserNotifications

/// Files that a person asked for with `stormy download`.
package enum Downloads {
    package static let sessionIdentifier = "StormyDownloads"
    /// Of the notifications that say how they ended.
    package static let category = "stormy.downloads"

    package static func configuration() -> URLSessionConfiguration {
        let configuration = URLSessionConfiguration.background(withIdentifier: sessionIdentifier)
        // A large file over a slow line takes its time; a week without a byte is the end all the same.
        configuration.timeoutIntervalForResource = 90 * 86_400
        return configuration
    }

    /// A task for a file, not yet resumed.
    ///
    /// - Parameters:
    ///   - sha256: 64 hex digits that its digest must be.
    ///   - replacing: whatever stands at `file` in the end, or nothing. `nil`: what stands there now, and nothing that appears later.
    package static func task(
        from url: URL, to file: URL, replacing: Bool?, sha256: String?, in session: URLSession
    ) -> URLSessionDownloadTask {
        var request = URLRequest(url: url)
        request.setValue(StormySettings.current.userAgent, forHTTPHeaderField: "User-Agent")
        let task = session.downloadTask(with: request)
        task.destination = file
        if let replacing { task.replacesDestination = replacing }
        task.expectedSHA256 = sha256
        (task.claimsDestination, task.isRefusalRead) = (true, true)
        return task
    }

    /// They are tried again: how that ends is told, also in words that were told before.
    package static func forgetTold(_ downloads: [BackgroundTransferStatus]) {
        UNUserNotificationCenter.current().removeDeliveredNotifications(
            withIdentifiers: downloads.map { notification($0.taskIdentifier) })
    }

    /// Tells how one ended, where nobody at a terminal hears of it.
    ///
    /// - Parameter trouble: `nil`: it is there.
    package static func tell(
        _ name: String, trouble: String?, taskIdentifier: Int, _ completion: @escaping @Sendable ((any Error)?) -> Void
    ) {
        let content = UNMutableNotificationContent()
        content.title = trouble == nil ? "Downloaded" : "Not downloaded"
        content.body = trouble.map { "\(name): \($0)" } ?? name
        content.interruptionLevel = .passive
        content.categoryIdentifier = category
        UNUserNotificationCenter.current().add(
            UNNotificationRequest(
                identifier: notification(taskIdentifier), content: content, trigger: nil, alertsOncePerContent: true),
            withCompletionHandler: completion)
    }

    fileprivate static func notification(_ taskIdentifier: Int) -> String { "download-\(taskIdentifier)" }
}

/// Tells the person of downloads that ended while nobody at a terminal followed them.
final class DownloadDelivery: URLSessionDownloadDelegate, EventDelivery {
    let lastEvent = LastEvent()
    let trouble = FirstError()

    func urlSession(_ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL) {}

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        let name =
            (task as? URLSessionDownloadTask)?.destination?.lastPathComponent
            ?? task.originalRequest?.url?.lastPathComponent ?? "The file"
        if let error = error as? URLError, error.code == .cancelled { return }
        Downloads.tell(name, trouble: error?.localizedDescription, taskIdentifier: task.taskIdentifier) { [trouble] in
            if let error = $0 { trouble.note(error) }
        }
    }
}
