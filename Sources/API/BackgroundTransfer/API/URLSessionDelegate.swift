import Foundation
import FoundationNetworking

// Apple's delegate protocols, with Apple's names. All methods but one are optional there; here they have defaults: those of a task's
// own delegate hand on to the session's, all others do nothing, or what is usual.

/// Hears of a session.
///
/// A question is answered in one of two forms, as on iOS: with a completion handler, or `async`. Where a delegate has both, the one with the handler
/// is called.
///
/// Differs from Apple: methods are found by their types and not by their names: one that is misspelt is another one. Of a subclass only those are called
/// that its base class, which conforms, has itself: declare the method there, and `override` it.
public protocol URLSessionDelegate: AnyObject, SendableMetatype {
    /// The session hears of nothing any more and let go of its delegate. `error` is always `nil`.
    func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?)

    /// A server asks for a credential, and the task's delegate leaves it to the session's. Ordinary sessions only.
    ///
    /// Differs from Apple: never called with `NSURLAuthenticationMethodServerTrust`: certificates are verified, always, and a delegate that pins one or
    /// trusts one of its own has no effect here.
    func urlSession(
        _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void)

    /// The same, without a handler.
    func urlSession(
        _ session: URLSession, didReceive challenge: URLAuthenticationChallenge
    ) async -> (URLSession.AuthChallengeDisposition, URLCredential?)

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

    /// The same, without a handler. Differs from Apple: never called.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, willBeginDelayedRequest request: URLRequest
    ) async -> (URLSession.DelayedRequestDisposition, URLRequest?)

    /// Nobody can be reached; the transfer begins as soon as the network allows. Once per task.
    func urlSession(_ session: URLSession, taskIsWaitingForConnectivity task: URLSessionTask)

    /// The server leads elsewhere. Called with the request to go on with, another one, or `nil`: the redirect is the answer. What is called with
    /// is sent as it stands: method, headers, body and timeout; to another server the proposed request has no secrets of the first.
    /// Ordinary sessions only: those of background sessions are always followed, by the agent.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void)

    /// The same, without a handler.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest
    ) async -> URLRequest?

    /// The server asks for a credential, by `Basic` or `Digest`. Without an answer the 401 is the task's answer. At most three
    /// times per task. Ordinary sessions only.
    ///
    /// Differs from Apple: never called about a certificate: pinning has no effect here.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void)

    /// The same, without a handler.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge
    ) async -> (URLSession.AuthChallengeDisposition, URLCredential?)

    /// A streamed upload begins, or begins anew after a redirect or a challenge: called with a stream that is not open yet. Ordinary sessions only.
    func urlSession(
        _ session: URLSession, task: URLSessionTask,
        needNewBodyStream completionHandler: @escaping @Sendable (InputStream?) -> Void)

    /// The same, without a handler.
    func urlSession(_ session: URLSession, needNewBodyStreamForTask task: URLSessionTask) async
        -> InputStream?

    /// Differs from Apple: never called; interim answers are not reported.
    func urlSession(_ session: URLSession, task: URLSessionTask, didReceiveInformationalResponse response: HTTPURLResponse)

    /// Bytes of a body were sent: a few times a second, while this process is there to hear it. In the place of observing `progress`, which Foundation has no
    /// key-value observing for on Linux.
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
    /// `.becomeDownload` is taken as `.allow`. In an ordinary one ``URLSession/ResponseDisposition/becomeStream`` ends the task in
    /// `URLError.unsupportedURL`.
    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void)

    /// The same, without a handler.
    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse
    ) async -> URLSession.ResponseDisposition

    /// The delegate wanted the answer as a download: this task goes on in place of the data task, which is told nothing more. Ordinary sessions only.
    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didBecome downloadTask: URLSessionDownloadTask)

    /// Differs from Apple: never called; no task becomes a stream.
    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didBecome streamTask: URLSessionStreamTask)

    /// An answer is about to be put into the cache: called with it, another one, or `nil`: nothing is kept. Ordinary sessions only.
    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, willCacheResponse proposedResponse: CachedURLResponse,
        completionHandler: @escaping @Sendable (CachedURLResponse?) -> Void)

    /// The same, without a handler.
    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, willCacheResponse proposedResponse: CachedURLResponse
    ) async -> CachedURLResponse?

    /// Bytes of the answer. In a background session all of them at once.
    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data)
}

/// Hears of downloads.
public protocol URLSessionDownloadDelegate: URLSessionTaskDelegate {
    /// The file exists until this method returns: move it or read it inside. A download with a
    /// ``URLSessionDownloadTask/destination`` is there already, and stays.
    func urlSession(_ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL)

    /// Bytes arrived: a few times a second, while this process is there to hear it. The total is -1 while nobody knows it. In the place of observing
    /// `progress`, which Foundation has no key-value observing for on Linux.
    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didWriteData bytesWritten: Int64,
        totalBytesWritten: Int64, totalBytesExpectedToWrite: Int64)

    /// A download went on where an earlier attempt or task had stopped.
    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didResumeAtOffset fileOffset: Int64,
        expectedTotalBytes: Int64)
}

/// Hears of web sockets.
public protocol URLSessionWebSocketDelegate: URLSessionTaskDelegate {
    /// The server took the handshake, and chose this of the protocols that it was offered; `nil`: none.
    func urlSession(
        _ session: URLSession, webSocketTask: URLSessionWebSocketTask, didOpenWithProtocol protocol: String?)

    /// A socket that was open is closed, by either side, or lost. The end of the task follows.
    func urlSession(
        _ session: URLSession, webSocketTask: URLSessionWebSocketTask, didCloseWith closeCode: URLSessionWebSocketTask.CloseCode,
        reason: Data?)
}

/// Hears of stream tasks. Differs from Apple: there are none that work, and nobody is called.
public protocol URLSessionStreamDelegate: URLSessionTaskDelegate {}
