import Foundation
import FoundationNetworking

// Apple's delegate protocols, with Apple's names. In Apple's protocols all methods but one are optional; here they have defaults. The
// defaults of a task's own delegate call the session's delegate. All other defaults do nothing, or what is usual.

/// A delegate that receives the events of a session.
///
/// A delegate answers a question in one of two forms, as on iOS: with a completion handler, or `async`. If a delegate has both forms, the
/// form with the handler is called.
///
/// Differs from Apple: methods are found by their types and not by their names, so a misspelt method is a different method. If a base class
/// conforms, only the methods that the base class declares are called: declare the method in the base class, and `override` it in the
/// subclass.
public protocol URLSessionDelegate: AnyObject, SendableMetatype {
    /// Reports that the session has released its delegate and will send no more events. `error` is always `nil`.
    func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?)

    /// Asks for a credential for a server, if the task's delegate leaves the question to the session's. Ordinary sessions only.
    ///
    /// Differs from Apple: never called with `NSURLAuthenticationMethodServerTrust`. Certificates are always verified: a delegate that pins
    /// a certificate, or trusts a private one, has no effect here.
    func urlSession(
        _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void)

    /// Asks for a credential for a server, without a handler.
    func urlSession(
        _ session: URLSession, didReceive challenge: URLAuthenticationChallenge
    ) async -> (URLSession.AuthChallengeDisposition, URLCredential?)

    /// Reports that the delegate has received all events of transfers that ended without this process. Called in a launch for the session,
    /// and whenever there were such events. Background sessions only.
    func urlSessionDidFinishEvents(forBackgroundURLSession session: URLSession)
}

/// A delegate that receives the events of a session's tasks.
public protocol URLSessionTaskDelegate: URLSessionDelegate {
    /// Reports that a task was created. The task is suspended.
    func urlSession(_ session: URLSession, didCreateTask task: URLSessionTask)

    /// Asks for the request of a delayed task. Differs from Apple: never called; a task with an `earliestBeginDate` begins with the request
    /// it has.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, willBeginDelayedRequest request: URLRequest,
        completionHandler: @escaping @Sendable (URLSession.DelayedRequestDisposition, URLRequest?) -> Void)

    /// Asks for the request of a delayed task, without a handler. Differs from Apple: never called.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, willBeginDelayedRequest request: URLRequest
    ) async -> (URLSession.DelayedRequestDisposition, URLRequest?)

    /// Reports that the server cannot be reached; the transfer begins as soon as the network allows. Called once per task.
    func urlSession(_ session: URLSession, taskIsWaitingForConnectivity task: URLSessionTask)

    /// Asks about a redirect. The handler takes the request to continue with, another request, or `nil` if the redirect itself is the
    /// response. The chosen request is sent unchanged: method, headers, body and timeout. If the redirect leads to another server, the
    /// proposed request contains no secrets of the first server. Ordinary sessions only: the agent follows all redirects of background
    /// sessions.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void)

    /// Asks about a redirect, without a handler.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest
    ) async -> URLRequest?

    /// Asks for a credential, for `Basic` or `Digest`. Without a credential the 401 is the task's response. Called at most three times per
    /// task. Ordinary sessions only.
    ///
    /// Differs from Apple: never called about a certificate: pinning has no effect here.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void)

    /// Asks for a credential, without a handler.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge
    ) async -> (URLSession.AuthChallengeDisposition, URLCredential?)

    /// Asks for the body of a streamed upload that begins, or begins again after a redirect or a challenge. The handler takes a stream that
    /// is not open yet. Ordinary sessions only.
    func urlSession(
        _ session: URLSession, task: URLSessionTask,
        needNewBodyStream completionHandler: @escaping @Sendable (InputStream?) -> Void)

    /// Asks for the body of a streamed upload, without a handler.
    func urlSession(_ session: URLSession, needNewBodyStreamForTask task: URLSessionTask) async
        -> InputStream?

    /// Reports an informational response. Differs from Apple: never called.
    func urlSession(_ session: URLSession, task: URLSessionTask, didReceiveInformationalResponse response: HTTPURLResponse)

    /// Reports that bytes of a body were sent: a few times a second, while this process is running. Replaces the observation of `progress`,
    /// because Foundation has no key-value observing of `progress` on Linux.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
        totalBytesExpectedToSend: Int64)

    /// Reports the metrics of a task, before the task's last method.
    func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics)

    /// Reports the end of a task. `error` is `nil` if a response arrived, whatever its status.
    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?)
}

/// A delegate that receives the events of data tasks, and the responses to uploads.
public protocol URLSessionDataDelegate: URLSessionTaskDelegate {
    /// Asks what to do after the response headers.
    ///
    /// Differs from Apple: in a background session the complete response is already stored; `.cancel` skips its body, and `.becomeDownload`
    /// has the effect of `.allow`. In an ordinary session ``URLSession/ResponseDisposition/becomeStream`` ends the task with
    /// `URLError.unsupportedURL`.
    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void)

    /// Asks what to do after the response headers, without a handler.
    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse
    ) async -> URLSession.ResponseDisposition

    /// Reports that a download task replaces a data task, because the delegate chose a download. The data task reports nothing more.
    /// Ordinary sessions only.
    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didBecome downloadTask: URLSessionDownloadTask)

    /// Reports that a data task became a stream. Differs from Apple: never called.
    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didBecome streamTask: URLSessionStreamTask)

    /// Asks which response to store in the cache. The handler takes the proposed response, another one, or `nil` to store nothing. Ordinary
    /// sessions only.
    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, willCacheResponse proposedResponse: CachedURLResponse,
        completionHandler: @escaping @Sendable (CachedURLResponse?) -> Void)

    /// Asks which response to store in the cache, without a handler.
    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, willCacheResponse proposedResponse: CachedURLResponse
    ) async -> CachedURLResponse?

    /// Reports bytes of the response. In a background session all bytes are reported at once.
    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data)
}

/// A delegate that receives the events of downloads.
public protocol URLSessionDownloadDelegate: URLSessionTaskDelegate {
    /// Reports the file of a complete download. The file exists until this method returns: move or read it in this method. If the download
    /// has a ``URLSessionDownloadTask/destination``, the file is already at that path and is kept.
    func urlSession(_ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL)

    /// Reports that bytes arrived: a few times a second, while this process is running. The expected total is -1 if it is not known.
    /// Replaces the observation of `progress`, because Foundation has no key-value observing of `progress` on Linux.
    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didWriteData bytesWritten: Int64,
        totalBytesWritten: Int64, totalBytesExpectedToWrite: Int64)

    /// Reports that a download continued from the bytes of an earlier attempt or task.
    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didResumeAtOffset fileOffset: Int64,
        expectedTotalBytes: Int64)
}

/// A delegate that receives the events of web sockets.
public protocol URLSessionWebSocketDelegate: URLSessionTaskDelegate {
    /// Reports that the server accepted the handshake, and the subprotocol that the server chose; `nil` if the server chose no subprotocol.
    func urlSession(
        _ session: URLSession, webSocketTask: URLSessionWebSocketTask, didOpenWithProtocol protocol: String?)

    /// Reports that an open socket was closed, by either side, or lost. The end of the task follows.
    func urlSession(
        _ session: URLSession, webSocketTask: URLSessionWebSocketTask, didCloseWith closeCode: URLSessionWebSocketTask.CloseCode,
        reason: Data?)
}

/// A delegate for stream tasks. Differs from Apple: stream tasks are not supported, so the delegate is never called.
public protocol URLSessionStreamDelegate: URLSessionTaskDelegate {}
