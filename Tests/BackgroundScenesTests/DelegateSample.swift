// The delegate of an iOS app, after the changes that the page "From UIApplicationDelegate" describes. The page shows the first
// class of this file.
import BackgroundScenes
import Synchronization

final class AppDelegate: BackgroundSessionApplicationDelegate {
    private let downloader = Downloader()

    func applicationDidFinishLaunching() {
        BGTaskScheduler.shared.register(forTaskWithIdentifier: "refresh", using: .main) { task in
            self.handleRefresh(task as! BGAppRefreshTask)
        }
    }

    func applicationDidEnterBackground() { scheduleRefresh() }

    func application(
        handleEventsForBackgroundURLSession identifier: String, completionHandler: @escaping @Sendable () -> Void
    ) {
        downloader.reconnect(completionHandler)
    }
}

extension AppDelegate {
    private func handleRefresh(_ task: BGAppRefreshTask) {
        scheduleRefresh()
        downloader.fetch(URL(string: "https://podcast.test/1.mp3")!)
        task.setTaskCompleted(success: true)
    }

    private func scheduleRefresh() {
        let request = BGAppRefreshTaskRequest(identifier: "refresh")
        request.earliestBeginDate = Date.distantFuture
        try? BGTaskScheduler.shared.submit(request)
    }
}

@MainActor
final class Downloader: NSObject, URLSessionDownloadDelegate {
    nonisolated static let kept = Mutex<[String]>([])

    /// Creates the session. If a session with this identifier is open, the result is the same session.
    private var session: URLSession {
        URLSession(configuration: .background(withIdentifier: "episodes"), delegate: self, delegateQueue: nil)
    }

    private var completionHandler: (@Sendable () -> Void)?

    func fetch(_ address: URL) { session.downloadTask(with: address).resume() }

    func reconnect(_ completionHandler: @escaping @Sendable () -> Void) {
        Self.kept.withLock { $0.append("reconnected") }
        self.completionHandler = completionHandler
        _ = session
    }

    nonisolated func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL
    ) {
        let text = (try? String(contentsOf: location, encoding: .utf8)) ?? "unreadable"
        Self.kept.withLock { $0.append(text) }
    }

    nonisolated func urlSessionDidFinishEvents(forBackgroundURLSession session: URLSession) {
        Task { @MainActor in
            completionHandler?()
            completionHandler = nil
        }
    }
}
