import Foundation
import FoundationNetworking

// Apple's delegate protocols, with Apple's names. All methods but one are optional there; here they have defaults: those of a task's
// own delegate hand on to the session's, all others do nothing, or what is usual.

/// Hears of a session.
public protocol URLSessionDelegate: AnyObject, Sendable {
    /// The session hears of nothing any more and let go of its delegate. `error` is always `nil`.
    func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?)

    /// A server asks for a credential, and the task's delegate leaves it to the session's. Ordinary sessions only.
    ///
    /// Differs from Apple: certificates are not asked about; they are verified, always.
    func urlSession(
        _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void)

    /// What ended without this process has been told, to the last event: in a launch for the session, and wherever there was any.
    /// Background sessions only.
    func urlSessionDidFinishEvents(forBackgroundURLSession session: URLSession)
}

/// Hears of the tasks of a session.
public protocol URLSessionTaskDelegate: URLSessionDelegate {
    /// A task was made; it is suspended.
    func urlSession(_ session: URLSession, didCreateTask task: URLSessionTask)

    /// Differs from Apple: never called; a task with an `earliestBeginDate` begins with the request it has.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, willBeginDelayedRequest request: URLRequest,
        completionHandler: @escaping @Sendable (URLSession.DelayedRequestDisposition, URLRequest?) -> Void)

    /// Nobody can be reached; the transfer begins as soon as the network allows. Once per task.
    func urlSession(_ session: URLSession, taskIsWaitingForConnectivity task: URLSessionTask)

    /// The server leads elsewhere. Called with the request to go on with, another one, or `nil`: the redirect is the answer.
    /// Ordinary sessions only: those of background sessions are always followed, by the agent.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void)

    /// The server asks for a credential, by `Basic` or `Digest`. Without an answer the 401 is the task's answer. At most three
    /// times per task. Ordinary sessions only.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void)

    /// Bytes of a body were sent: a few times a second, while this process is there to hear it.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
        totalBytesExpectedToSend: Int64)

    /// How a task went, before its last word.
    func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics)

    /// The last word on a task; `error` is `nil` when an answer arrived, whatever its status.
    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?)
}

/// Hears of data tasks, and of the answers to uploads.
public protocol URLSessionDataDelegate: URLSessionTaskDelegate {
    /// The answer's head.
    ///
    /// Differs from Apple: in a background session the whole answer is here already; `.cancel` leaves its body out, and
    /// `.becomeDownload` is taken as `.allow`.
    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void)

    /// Bytes of the answer. In a background session all of them at once.
    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data)
}

/// Hears of downloads.
public protocol URLSessionDownloadDelegate: URLSessionTaskDelegate {
    /// The file exists until this method returns: move it or read it inside. A download with a
    /// ``URLSessionDownloadTask/destination`` is there already, and stays.
    func urlSession(_ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL)

    /// Bytes arrived: a few times a second, while this process is there to hear it. The total is -1 while nobody knows it.
    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didWriteData bytesWritten: Int64,
        totalBytesWritten: Int64, totalBytesExpectedToWrite: Int64)

    /// A download went on where an earlier attempt or task had stopped.
    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didResumeAtOffset fileOffset: Int64,
        expectedTotalBytes: Int64)
}

extension URLSessionDelegate {
    public func urlSession(
        _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) { completionHandler(.performDefaultHandling, nil) }
    public func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) {}
    public func urlSessionDidFinishEvents(forBackgroundURLSession session: URLSession) {}
}

extension URLSessionTaskDelegate {
    public func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        guard let next = session.delegate(of: task, after: self) else { return completionHandler(request) }
        next.urlSession(
            session, task: task, willPerformHTTPRedirection: response, newRequest: request, completionHandler: completionHandler)
    }
    public func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        guard let next = session.delegate(of: task, after: self) else {
            return urlSession(session, didReceive: challenge, completionHandler: completionHandler)
        }
        next.urlSession(session, task: task, didReceive: challenge, completionHandler: completionHandler)
    }
    public func urlSession(_ session: URLSession, didCreateTask task: URLSessionTask) {
        session.delegate(of: task, after: self)?.urlSession(session, didCreateTask: task)
    }
    public func urlSession(
        _ session: URLSession, task: URLSessionTask, willBeginDelayedRequest request: URLRequest,
        completionHandler: @escaping @Sendable (URLSession.DelayedRequestDisposition, URLRequest?) -> Void
    ) { completionHandler(.continueLoading, nil) }
    public func urlSession(_ session: URLSession, taskIsWaitingForConnectivity task: URLSessionTask) {
        session.delegate(of: task, after: self)?.urlSession(session, taskIsWaitingForConnectivity: task)
    }
    public func urlSession(
        _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
        totalBytesExpectedToSend: Int64
    ) {
        session.delegate(of: task, after: self)?.urlSession(
            session, task: task, didSendBodyData: bytesSent, totalBytesSent: totalBytesSent,
            totalBytesExpectedToSend: totalBytesExpectedToSend)
    }
    public func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics) {
        session.delegate(of: task, after: self)?.urlSession(session, task: task, didFinishCollecting: metrics)
    }
    public func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        session.delegate(of: task, after: self)?.urlSession(session, task: task, didCompleteWithError: error)
    }
}

extension URLSessionDataDelegate {
    public func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
        guard let next = session.delegate(of: dataTask, after: self) as? any URLSessionDataDelegate else {
            return completionHandler(.allow)
        }
        next.urlSession(session, dataTask: dataTask, didReceive: response, completionHandler: completionHandler)
    }
    public func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        let next = session.delegate(of: dataTask, after: self) as? any URLSessionDataDelegate
        next?.urlSession(session, dataTask: dataTask, didReceive: data)
    }
}

extension URLSessionDownloadDelegate {
    public func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didWriteData bytesWritten: Int64,
        totalBytesWritten: Int64, totalBytesExpectedToWrite: Int64
    ) {
        let next = session.delegate(of: downloadTask, after: self) as? any URLSessionDownloadDelegate
        next?.urlSession(
            session, downloadTask: downloadTask, didWriteData: bytesWritten, totalBytesWritten: totalBytesWritten,
            totalBytesExpectedToWrite: totalBytesExpectedToWrite)
    }
    public func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didResumeAtOffset fileOffset: Int64,
        expectedTotalBytes: Int64
    ) {
        let next = session.delegate(of: downloadTask, after: self) as? any URLSessionDownloadDelegate
        next?.urlSession(
            session, downloadTask: downloadTask, didResumeAtOffset: fileOffset, expectedTotalBytes: expectedTotalBytes)
    }
}

// MARK: - Who hears

// What a task's own delegate lacks the session's hears: a method that is left out (above), and the methods of a protocol that
// the task's delegate does not conform to (below).

extension URLSession {
    /// The session's delegate, where `asked` is the task's own and leaves a method out.
    fileprivate func delegate(
        of task: URLSessionTask, after asked: any URLSessionTaskDelegate
    ) -> (any URLSessionTaskDelegate)? {
        guard let own = task.delegate, own === asked, let next = delegate, next !== own else { return nil }
        return next as? any URLSessionTaskDelegate
    }
}

extension URLSessionTask {
    /// Somebody in this process waits for its end, whether the session has a delegate or not.
    var isAwaitedHere: Bool { facts.withLock { $0.completion != nil || $0.delegate != nil } }

    /// Who hears of this task: its own delegate, or the session's.
    func hearer(or sessionDelegate: (any URLSessionDelegate)?) -> (any URLSessionTaskDelegate)? {
        delegate ?? sessionDelegate as? any URLSessionTaskDelegate
    }

    /// The same for the methods of one protocol.
    func hearer<Hearer>(as kind: Hearer.Type, or sessionDelegate: (any URLSessionDelegate)?) -> Hearer? {
        delegate as? Hearer ?? sessionDelegate as? Hearer
    }
}
