import BackgroundScenes
import Foundation
import Synchronization

/// A delegate that logs every event, and moves downloaded files into the app's own folder, as an app on iOS does.
final class CourierDelegate: NSObject, URLSessionDownloadDelegate, URLSessionDataDelegate, Sendable {
    private struct Waiting {
        var isDelivered = false
        var forEvents: [CheckedContinuation<Void, Never>] = []
        var completed = 0
        var forCompletions: [(count: Int, CheckedContinuation<Void, Never>)] = []
        var firstBytes: CheckedContinuation<Void, Never>?
        var hasBytes = false
    }

    private let waiting = Mutex(Waiting())
    static let folder = URL(fileURLWithPath: ProcessInfo.processInfo.environment["COURIER_FOLDER"] ?? ".")

    func eventsDelivered() async {
        await withCheckedContinuation { continuation in
            let isOver = waiting.withLock { waiting in
                if !waiting.isDelivered { waiting.forEvents.append(continuation) }
                return waiting.isDelivered
            }
            if isOver { continuation.resume() }
        }
    }

    func completions(_ count: Int) async {
        await withCheckedContinuation { continuation in
            let isOver = waiting.withLock { waiting in
                if waiting.completed < count { waiting.forCompletions.append((count, continuation)) }
                return waiting.completed >= count
            }
            if isOver { continuation.resume() }
        }
    }

    func firstBytes() async {
        await withCheckedContinuation { continuation in
            let isOver = waiting.withLock { waiting in
                if !waiting.hasBytes { waiting.firstBytes = continuation }
                return waiting.hasBytes
            }
            if isOver { continuation.resume() }
        }
    }

    private func name(_ task: URLSessionTask) -> String { task.taskDescription ?? "task" }

    func urlSession(_ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL) {
        let place = Self.folder.appendingPathComponent("\(name(downloadTask))-\(downloadTask.taskIdentifier)")
        do {
            try FileManager.default.moveItem(at: location, to: place)
            log("finish \(name(downloadTask)) \(try Data(contentsOf: place).count)")
            if ProcessInfo.processInfo.environment["COURIER_NAMES"] != nil {
                log("name \(downloadTask.response?.suggestedFilename ?? "none")")
            }
        } catch {
            log("finish \(name(downloadTask)) cannot be moved: \(error.localizedDescription)")
        }
    }

    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didWriteData bytesWritten: Int64,
        totalBytesWritten: Int64, totalBytesExpectedToWrite: Int64
    ) { resumeFirstBytes() }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
        totalBytesExpectedToSend: Int64
    ) { resumeFirstBytes() }

    private func resumeFirstBytes() {
        let first = waiting.withLock { waiting in
            waiting.hasBytes = true
            defer { waiting.firstBytes = nil }
            return waiting.firstBytes
        }
        first?.resume()
    }

    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didResumeAtOffset fileOffset: Int64,
        expectedTotalBytes: Int64
    ) { log("resumed \(name(downloadTask)) at \(fileOffset) of \(expectedTotalBytes)") }

    func urlSession(_ session: URLSession, taskIsWaitingForConnectivity task: URLSessionTask) { log("waiting \(name(task))") }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
        log("response \(name(dataTask)) \((response as? HTTPURLResponse)?.statusCode ?? 0)")
        if ProcessInfo.processInfo.environment["COURIER_UNDECIDED"] == nil { completionHandler(.allow) }
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        log("data \(name(dataTask)) \(String(decoding: data.prefix(40), as: UTF8.self))")
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics) {
        log("metrics \(name(task)) \(metrics.attemptCount)")
    }

    /// Stores resume data for a later process.
    func store(resumeData: Data) {
        do {
            try resumeData.write(to: Self.folder.appendingPathComponent("resume"))
        } catch {
            log("resume data not kept: \(error)")
        }
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        let error = error as? URLError
        let resume = error?.downloadTaskResumeData == nil ? "" : " with resume data"
        log("complete \(name(task)) \(error.map { "\($0.code.rawValue)" } ?? "ok")\(resume)")
        if let data = error?.downloadTaskResumeData { store(resumeData: data) }
        let continuations = waiting.withLock { waiting in
            waiting.completed += 1
            let done = waiting.completed
            defer { waiting.forCompletions.removeAll { $0.count <= done } }
            return waiting.forCompletions.filter { $0.count <= done }.map(\.1)
        }
        for continuation in continuations { continuation.resume() }
        let environment = ProcessInfo.processInfo.environment
        if environment["COURIER_COUNT"] != nil || environment["COURIER_SLOW"] != nil { usleep(900_000) }
        if environment["COURIER_BESIDE"] != nil, name(task) == "left0" { dieBesideAnotherBeginning(task, session) }
        if environment["COURIER_CRASH"] == name(task) { exit(0) }
        if environment["COURIER_FOLLOW"] != nil, name(task).hasPrefix("left") { beginFollowUp(of: task, session) }
    }

    /// Kills this process during the delegate method, after another thread has begun a download. Only the first call kills the
    /// process.
    private func dieBesideAnotherBeginning(_ task: URLSessionTask, _ session: URLSession) {
        guard mkdir(Self.folder.appendingPathComponent("beside").path, 0o700) == 0, let url = task.originalRequest?.url else {
            return
        }
        let other = session.downloadTask(with: url)
        other.taskDescription = "beside"
        Thread.detachNewThread {
            other.resume()
            raise(SIGKILL)
        }
        while true { pause() }
    }

    /// Begins another download of the address, and ends this process in the middle of the delegate method.
    private func beginFollowUp(of task: URLSessionTask, _ session: URLSession) {
        guard let url = task.originalRequest?.url else { return }
        let next = session.downloadTask(with: url)
        next.taskDescription = "follow-up of \(name(task))"
        next.resume()
        exit(0)
    }

    func urlSessionDidFinishEvents(forBackgroundURLSession session: URLSession) {
        log("events delivered")
        let continuations = waiting.withLock { waiting in
            waiting.isDelivered = true
            defer { waiting.forEvents = [] }
            return waiting.forEvents
        }
        for continuation in continuations { continuation.resume() }
    }

    func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) { log("invalid") }
}
