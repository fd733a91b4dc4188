// The downloads of a podcast player. The user can pause and resume a download, also after a failure. The code was written for
// iOS, and only its imports were changed.
import BackgroundTasks
import BackgroundTransfer
import UserNotifications

struct Episode: Codable, Hashable, Sendable {
    let id: String
    let title: String
    let audioURL: URL
}

final class EpisodeDownload: @unchecked Sendable {
    let episode: Episode
    var task: URLSessionDownloadTask?
    var isDownloading = false
    var progress: Double = 0
    var resumeData: Data?

    init(episode: Episode) { self.episode = episode }
}

protocol EpisodeDownloadManagerDelegate: AnyObject, Sendable {
    func downloadManager(_ manager: EpisodeDownloadManager, didFinish episode: Episode, at url: URL)
    func downloadManager(_ manager: EpisodeDownloadManager, didFail episode: Episode, with error: Error)
    func downloadManager(_ manager: EpisodeDownloadManager, didResume episode: Episode, at offset: Int64)
}

class EpisodeDownloadManager: NSObject, @unchecked Sendable {
    static let shared = EpisodeDownloadManager(
        folder: FileManager.default.urls(for: .documentDirectory, in: .userDomainMask)[0])

    static let backgroundSessionIdentifier = "com.example.podcast.downloads"

    weak var delegate: EpisodeDownloadManagerDelegate?
    var backgroundCompletionHandler: (() -> Void)?

    private let folder: URL
    private let lock = NSLock()
    private var activeDownloads: [URL: EpisodeDownload] = [:]
    private lazy var session: URLSession = {
        let configuration = URLSessionConfiguration.background(withIdentifier: Self.backgroundSessionIdentifier)
        configuration.isDiscretionary = false
        configuration.sessionSendsLaunchEvents = true
        configuration.allowsCellularAccess = true
        configuration.httpMaximumConnectionsPerHost = 2
        configuration.timeoutIntervalForResource = 6 * 60 * 60
        return URLSession(configuration: configuration, delegate: self, delegateQueue: nil)
    }()

    init(folder: URL) {
        self.folder = folder
        super.init()
    }

    /// Creates the session again at launch, so that the delegate receives events that occurred before.
    func restore() async {
        for case let task as URLSessionDownloadTask in await session.allTasks {
            guard let download = download(of: task) else { continue }
            download.task = task
            download.isDownloading = task.state == .running
            set(download, for: download.episode.audioURL)
        }
    }

    /// The description of a task is kept when the app ends.
    private func download(of task: URLSessionTask) -> EpisodeDownload? {
        if let url = task.originalRequest?.url, let known = download(for: url) { return known }
        guard let data = task.taskDescription?.data(using: .utf8),
            let episode = try? JSONDecoder().decode(Episode.self, from: data)
        else { return nil }
        return EpisodeDownload(episode: episode)
    }

    // MARK: - Download methods

    func startDownload(_ episode: Episode) {
        let download = EpisodeDownload(episode: episode)
        let task = session.downloadTask(with: episode.audioURL)
        task.taskDescription = (try? JSONEncoder().encode(episode)).flatMap { String(data: $0, encoding: .utf8) }
        task.countOfBytesClientExpectsToSend = 200
        task.countOfBytesClientExpectsToReceive = 50 * 1024 * 1024
        task.resume()
        download.task = task
        download.isDownloading = true
        set(download, for: episode.audioURL)
    }

    func pauseDownload(_ episode: Episode, completion: (@Sendable () -> Void)? = nil) {
        guard let download = download(for: episode.audioURL), download.isDownloading else { return }
        download.task?.cancel(byProducingResumeData: { data in
            download.resumeData = data
            completion?()
        })
        download.isDownloading = false
    }

    func resumeDownload(_ episode: Episode) {
        guard let download = download(for: episode.audioURL) else { return }
        if let resumeData = download.resumeData {
            download.task = session.downloadTask(withResumeData: resumeData)
        } else {
            download.task = session.downloadTask(with: download.episode.audioURL)
        }
        download.task?.resume()
        download.isDownloading = true
    }

    func cancelDownload(_ episode: Episode) {
        guard let download = download(for: episode.audioURL) else { return }
        download.task?.cancel()
        set(nil, for: episode.audioURL)
    }

    func localURL(for episode: Episode) -> URL { folder.appendingPathComponent(episode.audioURL.lastPathComponent) }

    func download(for url: URL) -> EpisodeDownload? {
        lock.lock()
        defer { lock.unlock() }
        return activeDownloads[url]
    }

    private func set(_ download: EpisodeDownload?, for url: URL) { lock.withLock { activeDownloads[url] = download } }
}

// MARK: - URLSessionDownloadDelegate

extension EpisodeDownloadManager: URLSessionDownloadDelegate {
    func urlSession(_ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL) {
        guard let download = download(of: downloadTask) else { return }
        set(nil, for: download.episode.audioURL)

        let destinationURL = localURL(for: download.episode)
        let fileManager = FileManager.default
        try? fileManager.removeItem(at: destinationURL)
        do {
            try fileManager.createDirectory(at: folder, withIntermediateDirectories: true)
            try fileManager.moveItem(at: location, to: destinationURL)
            delegate?.downloadManager(self, didFinish: download.episode, at: destinationURL)
            notify(download.episode)
        } catch {
            delegate?.downloadManager(self, didFail: download.episode, with: error)
        }
    }

    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didWriteData bytesWritten: Int64, totalBytesWritten: Int64,
        totalBytesExpectedToWrite: Int64
    ) {
        guard let download = download(of: downloadTask), totalBytesExpectedToWrite > 0 else { return }
        download.progress = Double(totalBytesWritten) / Double(totalBytesExpectedToWrite)
    }

    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didResumeAtOffset fileOffset: Int64,
        expectedTotalBytes: Int64
    ) {
        guard let download = download(of: downloadTask) else { return }
        delegate?.downloadManager(self, didResume: download.episode, at: fileOffset)
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: Error?) {
        guard let error, let download = download(of: task) else { return }
        let userInfo = (error as NSError).userInfo
        if let resumeData = userInfo[NSURLSessionDownloadTaskResumeData] as? Data { download.resumeData = resumeData }
        if let reason = userInfo[NSURLErrorBackgroundTaskCancelledReasonKey] as? Int {
            print("cancelled by the system: \(reason)")
        }
        if (error as? URLError)?.code == .cancelled { return }
        download.isDownloading = false
        delegate?.downloadManager(self, didFail: download.episode, with: error)
    }

    func urlSessionDidFinishEvents(forBackgroundURLSession session: URLSession) {
        DispatchQueue.main.async {
            self.backgroundCompletionHandler?()
            self.backgroundCompletionHandler = nil
        }
    }

    private func notify(_ episode: Episode) {
        let content = UNMutableNotificationContent()
        content.title = "Ready to play"
        content.body = episode.title
        content.sound = .default
        content.threadIdentifier = "downloads"
        UNUserNotificationCenter.current().add(
            UNNotificationRequest(identifier: "episode-\(episode.id)", content: content, trigger: nil))
    }
}

final class PodcastAppDelegate: NSObject, @unchecked Sendable {
    let makeManager: @Sendable () -> EpisodeDownloadManager
    private(set) var manager: EpisodeDownloadManager?

    init(makeManager: @escaping @Sendable () -> EpisodeDownloadManager = { .shared }) { self.makeManager = makeManager }

    #if false  // lacks: UIApplicationDelegate
        func application(
            _ application: UIApplication, handleEventsForBackgroundURLSession identifier: String,
            completionHandler: @escaping () -> Void
        ) { handleEvents(of: identifier, completionHandler: completionHandler) }
    #else
        func didFinishLaunching() {
            BackgroundTransfers.handleEventsForBackgroundURLSession { identifier, completionHandler in
                self.handleEvents(of: identifier, completionHandler: completionHandler)
            }
        }
    #endif

    private func handleEvents(of identifier: String, completionHandler: @escaping () -> Void) {
        guard identifier == EpisodeDownloadManager.backgroundSessionIdentifier else { return completionHandler() }
        let manager = makeManager()
        manager.backgroundCompletionHandler = completionHandler
        self.manager = manager
        Task { await manager.restore() }
    }
}
