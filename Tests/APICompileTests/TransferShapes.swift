// Real download and upload code that was written for iOS, and whose imports were changed. The code must compile.
import BackgroundTransfer
import Foundation
import Testing

/// A download manager as most apps write it: the session is found by its identifier, and a task is found by its description.
class DownloadManager: NSObject, URLSessionDownloadDelegate, @unchecked Sendable {
    static let shared = DownloadManager()

    private lazy var session: URLSession = {
        let config = URLSessionConfiguration.background(withIdentifier: "com.example.downloads")
        config.isDiscretionary = false
        config.sessionSendsLaunchEvents = true
        config.allowsCellularAccess = false
        config.allowsExpensiveNetworkAccess = false
        config.allowsConstrainedNetworkAccess = true
        config.waitsForConnectivity = true
        config.httpMaximumConnectionsPerHost = 4
        config.timeoutIntervalForRequest = 30
        config.timeoutIntervalForResource = 60 * 60 * 24
        config.httpAdditionalHeaders = ["X-Client": "ios"]
        config.requestCachePolicy = .reloadIgnoringLocalCacheData
        config.urlCache = nil
        config.httpCookieStorage = .shared
        config.httpShouldSetCookies = true
        config.sharedContainerIdentifier = "group.example"
        config.networkServiceType = .background
        return URLSession(configuration: config, delegate: self, delegateQueue: nil)
    }()

    var backgroundCompletionHandler: (() -> Void)?
    private var progressHandlers: [Int: (Double) -> Void] = [:]
    private var resumeDatas: [String: Data] = [:]

    func start(_ url: URL, id: String) {
        let task = session.downloadTask(with: url)
        task.taskDescription = id
        task.earliestBeginDate = Date().addingTimeInterval(60)
        task.countOfBytesClientExpectsToSend = 200
        task.countOfBytesClientExpectsToReceive = 500 * 1024
        task.priority = URLSessionTask.highPriority
        task.resume()
    }

    func pause(id: String) {
        session.getAllTasks { tasks in
            guard let task = tasks.first(where: { $0.taskDescription == id }) as? URLSessionDownloadTask else { return }
            task.cancel { resumeData in
                guard let resumeData else { return }
                self.resumeDatas[id] = resumeData
            }
        }
    }

    func resume(id: String) {
        guard let data = resumeDatas[id] else { return }
        session.downloadTask(withResumeData: data).resume()
    }

    func restore() async {
        for task in await session.allTasks where task.state == .suspended { task.resume() }
        let (dataTasks, uploadTasks, downloadTasks) = await session.tasks
        print(dataTasks.count, uploadTasks.count, downloadTasks.map(\.taskIdentifier))
        session.getTasksWithCompletionHandler { _, _, downloads in print(downloads.count) }
    }

    func urlSession(_ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL) {
        guard let url = downloadTask.originalRequest?.url ?? downloadTask.currentRequest?.url else { return }
        let destination = FileManager.default.temporaryDirectory.appendingPathComponent(url.lastPathComponent)
        try? FileManager.default.removeItem(at: destination)
        do { try FileManager.default.moveItem(at: location, to: destination) } catch { print(error) }
        if let response = downloadTask.response as? HTTPURLResponse, !(200..<300).contains(response.statusCode) { return }
    }

    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didWriteData bytesWritten: Int64,
        totalBytesWritten: Int64, totalBytesExpectedToWrite: Int64
    ) {
        guard totalBytesExpectedToWrite != NSURLSessionTransferSizeUnknown else { return }
        progressHandlers[downloadTask.taskIdentifier]?(Double(totalBytesWritten) / Double(totalBytesExpectedToWrite))
    }

    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didResumeAtOffset fileOffset: Int64,
        expectedTotalBytes: Int64
    ) {}

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: Error?) {
        guard let error = error as NSError? else { return }
        if error.code == NSURLErrorCancelled { return }
        if let data = error.userInfo[NSURLSessionDownloadTaskResumeData] as? Data, let id = task.taskDescription {
            resumeDatas[id] = data
        }
        if let urlError = error as? URLError {
            switch urlError.code {
            case .notConnectedToInternet, .networkConnectionLost: break
            default: print(urlError.downloadTaskResumeData?.count ?? 0)
            }
        }
    }

    func urlSessionDidFinishEvents(forBackgroundURLSession session: URLSession) {
        DispatchQueue.main.async {
            self.backgroundCompletionHandler?()
            self.backgroundCompletionHandler = nil
        }
    }

    func urlSession(_ session: URLSession, didBecomeInvalidWithError error: Error?) {}
    func urlSession(_ session: URLSession, taskIsWaitingForConnectivity task: URLSessionTask) {}
    func urlSession(_ session: URLSession, didCreateTask task: URLSessionTask) { _ = task.progress.fractionCompleted }
    func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics) {
        print(metrics.taskInterval.duration, metrics.redirectCount, metrics.transactionMetrics.first?.fetchStartDate as Any)
    }

    func urlSession(
        _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) { completionHandler(.performDefaultHandling, nil) }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) { completionHandler(request) }
}

/// An uploader, and a data delegate.
final class Uploader: NSObject, URLSessionDataDelegate, @unchecked Sendable {
    private var received = Data()

    func send(_ file: URL, to url: URL) {
        let session = URLSession(
            configuration: .background(withIdentifier: "com.example.uploads"), delegate: self, delegateQueue: .main)
        var request = URLRequest(url: url)
        request.httpMethod = "POST"
        request.setValue("image/jpeg", forHTTPHeaderField: "Content-Type")
        let task = session.uploadTask(with: request, fromFile: file)
        task.resume()
        session.finishTasksAndInvalidate()
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) { received.append(data) }
    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) { completionHandler(.allow) }
    func urlSession(
        _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
        totalBytesExpectedToSend: Int64
    ) {}
}

/// Requests with closures, async calls, and the shared session.
enum Fetching {
    static func closures(_ url: URL) {
        URLSession.shared.dataTask(with: url) { data, response, error in
            guard error == nil, let data, let http = response as? HTTPURLResponse, http.statusCode == 200 else { return }
            print(data.count)
        }.resume()
        let task = URLSession.shared.downloadTask(with: URLRequest(url: url)) { location, _, _ in print(location as Any) }
        task.resume()
        task.cancel()
    }

    static func asyncCalls(_ url: URL) async throws -> Int {
        let (data, response) = try await URLSession.shared.data(from: url)
        guard (response as? HTTPURLResponse)?.statusCode == 200 else { throw URLError(.badServerResponse) }
        let (file, _) = try await URLSession(configuration: .ephemeral).download(for: URLRequest(url: url), delegate: nil)
        _ = try await URLSession.shared.upload(for: URLRequest(url: url), from: data)
        _ = try await URLSession.shared.upload(for: URLRequest(url: url), fromFile: file)
        return data.count
    }

    /// An async call as in WWDC22: if the launch reaches its time limit, the download continues in the agent.
    static func handOver(_ request: URLRequest) async -> Bool {
        let config = URLSessionConfiguration.background(withIdentifier: "isStormy")
        config.sessionSendsLaunchEvents = true
        let session = URLSession(configuration: config)
        let response = await withTaskCancellationHandler {
            try? await session.data(for: request)
        } onCancel: {
            let task = session.downloadTask(with: request)
            task.resume()
        }
        return response != nil
    }
}

@Suite struct TransferShapesTests {
    /// The code of this file is never called. The test passes if this file compiles.
    @Test func `code of real downloads and uploads compiles`() {
        #expect(DownloadManager.self is any URLSessionDownloadDelegate.Type)
        #expect(Uploader.self is any URLSessionDataDelegate.Type)
    }
}
