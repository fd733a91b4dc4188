import BackgroundTransfer
import Foundation
import UserNotifications

/// Files that a user downloads with `stormy download`.
package enum Downloads {
    package static let sessionIdentifier = "StormyDownloads"
    /// The category of the notifications about completed and failed downloads.
    package static let category = "stormy.downloads"

    package static func configuration() -> URLSessionConfiguration {
        let configuration = URLSessionConfiguration.background(withIdentifier: sessionIdentifier)
        // The time limit is 90 days, because a large file on a slow connection takes long. A download also fails if no byte
        // arrives for a week.
        configuration.timeoutIntervalForResource = 90 * 86_400
        return configuration
    }

    /// Returns a task for a file. The caller resumes the task.
    ///
    /// - Parameters:
    ///   - sha256: The expected digest, as 64 hexadecimal digits.
    ///   - replacing: `true` to replace any file at `file` when the download is complete, `false` to replace no file. `nil` to
    ///     replace only a file that exists now.
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

    /// Removes the notifications of downloads that are retried, so that the next result is shown even if both results have equal
    /// texts.
    package static func removeResultNotifications(_ downloads: [BackgroundTransferStatus]) {
        UNUserNotificationCenter.current().removeDeliveredNotifications(
            withIdentifiers: downloads.map { notification($0.taskIdentifier) })
    }

    /// Shows a notification about the result of a download, if no command in a terminal waits for the download.
    ///
    /// - Parameter trouble: `nil` if the download succeeded.
    package static func show(
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

/// Notifies the user of downloads that ended while no command in a terminal waited for the downloads.
final class DownloadDelivery: URLSessionDownloadDelegate, EventDelivery {
    let lastEvent = LastEvent()
    let trouble = FirstError()

    func urlSession(_ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL) {}

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        let name =
            (task as? URLSessionDownloadTask)?.destination?.lastPathComponent
            ?? task.originalRequest?.url?.lastPathComponent ?? "The file"
        if let error = error as? URLError, error.code == .cancelled { return }
        Downloads.show(name, trouble: error?.localizedDescription, taskIdentifier: task.taskIdentifier) { [trouble] in
            if let error = $0 { trouble.record(error) }
        }
    }
}
