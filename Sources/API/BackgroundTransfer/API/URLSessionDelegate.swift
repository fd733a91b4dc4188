import Foundation
import FoundationNetworking

// Apple's delegate protocols, with Apple's names. In Apple's protocols all methods except one are optional. In this module every
// method has a default implementation. For a task's own delegate, the default implementation calls the session's delegate.
// Otherwise the default implementation does nothing, or returns the usual decision.

/// A delegate that receives the events of a session.
///
/// A method that returns a decision has two forms: a form with a completion handler, and an `async` form. If a delegate
/// implements both forms, the form with the handler is called.
///
/// Differs from Apple: if a delegate declares a method with a wrong name or type, the method is not called, and the compiler
/// reports no error. If a base class conforms to the protocol, only methods that the base class declares are called. Declare the
/// method in the base class, and `override` the method in the subclass.
public protocol URLSessionDelegate: AnyObject, SendableMetatype {
    /// Reports that the session has removed its reference to the delegate and will send no more events. `error` is always `nil`.
    func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?)

    /// Asks the delegate for a credential for a server, if the task's delegate does not implement a method for challenges. Only
    /// ordinary sessions call this method.
    ///
    /// Differs from Apple: the method is never called with `NSURLAuthenticationMethodServerTrust`. The system always verifies
    /// certificates, so a delegate cannot pin a certificate or trust a private certificate.
    func urlSession(
        _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void)

    /// Asks the delegate for a credential for a server (`async` form).
    func urlSession(
        _ session: URLSession, didReceive challenge: URLAuthenticationChallenge
    ) async -> (URLSession.AuthChallengeDisposition, URLCredential?)

    /// Reports that the delegate has received all events of transfers that ended while this process was not running. In a process
    /// that the agent launched for the session, the method is always called. In other processes, the method is called only if
    /// such events were reported. Only background sessions call this method.
    func urlSessionDidFinishEvents(forBackgroundURLSession session: URLSession)
}

/// A delegate that receives the events of a session's tasks.
public protocol URLSessionTaskDelegate: URLSessionDelegate {
    /// Reports that a task was created. The task is suspended.
    func urlSession(_ session: URLSession, didCreateTask task: URLSessionTask)

    /// Asks the delegate for the request of a delayed task. Differs from Apple: the method is never called, because a task with
    /// an `earliestBeginDate` begins with the original request.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, willBeginDelayedRequest request: URLRequest,
        completionHandler: @escaping @Sendable (URLSession.DelayedRequestDisposition, URLRequest?) -> Void)

    /// Asks the delegate for the request of a delayed task (`async` form). Differs from Apple: the method is never called.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, willBeginDelayedRequest request: URLRequest
    ) async -> (URLSession.DelayedRequestDisposition, URLRequest?)

    /// Reports that the server cannot be reached. The transfer begins when the server can be reached. The method is called at
    /// most once for each task.
    func urlSession(_ session: URLSession, taskIsWaitingForConnectivity task: URLSessionTask)

    /// Asks the delegate for the request that follows a redirect. Call the handler with the proposed request, with another
    /// request, or with `nil` to receive the redirect itself as the response. The session sends the chosen request with its
    /// method, headers, body and timeout unchanged. If the redirect leads to another server, the proposed request contains no
    /// secrets of the first server. Only ordinary sessions call this method, because the agent follows all redirects of
    /// background sessions.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void)

    /// Asks the delegate for the request that follows a redirect (`async` form).
    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest
    ) async -> URLRequest?

    /// Asks the delegate for a credential for `Basic` or `Digest` authentication. If the delegate provides no credential, the app
    /// receives the response with status 401. The method is called at most three times for each task. Only ordinary sessions call
    /// this method.
    ///
    /// Differs from Apple: the method is never called about a certificate, so a delegate cannot pin certificates.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void)

    /// Asks the delegate for a credential (`async` form).
    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge
    ) async -> (URLSession.AuthChallengeDisposition, URLCredential?)

    /// Asks the delegate for the body of a streamed upload. The method is called at the start of the upload, and again after a
    /// redirect or a challenge. Call the handler with a stream that is not open yet. Only ordinary sessions call this method.
    func urlSession(
        _ session: URLSession, task: URLSessionTask,
        needNewBodyStream completionHandler: @escaping @Sendable (InputStream?) -> Void)

    /// Asks the delegate for the body of a streamed upload (`async` form).
    func urlSession(_ session: URLSession, needNewBodyStreamForTask task: URLSessionTask) async
        -> InputStream?

    /// Reports an informational response. Differs from Apple: the method is never called.
    func urlSession(_ session: URLSession, task: URLSessionTask, didReceiveInformationalResponse response: HTTPURLResponse)

    /// Reports that bytes of the request body were sent. The method is called a few times a second while this process is running.
    /// Use this method instead of key-value observing of `progress`, because Foundation on Linux has no key-value observing.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
        totalBytesExpectedToSend: Int64)

    /// Reports the metrics of a task. The method is called before ``urlSession(_:task:didCompleteWithError:)``.
    func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics)

    /// Reports the end of a task. If a response arrived, `error` is `nil`, for any HTTP status.
    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?)
}

/// A delegate that receives the events of data tasks, and the responses to uploads.
public protocol URLSessionDataDelegate: URLSessionTaskDelegate {
    /// Asks the delegate for the next step after the response headers arrived.
    ///
    /// Differs from Apple: in a background session the complete response is already stored. In a background session, `.cancel`
    /// skips the body of the response, and `.becomeDownload` has the same effect as `.allow`. In an ordinary session,
    /// ``URLSession/ResponseDisposition/becomeStream`` ends the task with `URLError.unsupportedURL`.
    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void)

    /// Asks the delegate for the next step after the response headers (`async` form).
    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse
    ) async -> URLSession.ResponseDisposition

    /// Reports that a download task replaces a data task, because the delegate chose `.becomeDownload`. No more events of the
    /// data task are reported. Only ordinary sessions call this method.
    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didBecome downloadTask: URLSessionDownloadTask)

    /// Reports that a data task became a stream. Differs from Apple: the method is never called.
    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didBecome streamTask: URLSessionStreamTask)

    /// Asks the delegate which response is stored in the cache. Call the handler with the proposed response, with another
    /// response, or with `nil` to store nothing. Only ordinary sessions call this method.
    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, willCacheResponse proposedResponse: CachedURLResponse,
        completionHandler: @escaping @Sendable (CachedURLResponse?) -> Void)

    /// Asks which response to store in the cache (`async` form).
    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, willCacheResponse proposedResponse: CachedURLResponse
    ) async -> CachedURLResponse?

    /// Reports bytes of the response. In a background session, one call reports all bytes.
    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data)
}

/// A delegate that receives the events of downloads.
public protocol URLSessionDownloadDelegate: URLSessionTaskDelegate {
    /// Reports the file of a complete download. Move or read the file in this method, because the file is removed when this
    /// method returns. If the download has a ``URLSessionDownloadTask/destination``, the file is already at the destination and
    /// is not removed.
    func urlSession(_ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL)

    /// Reports that bytes arrived. The method is called a few times a second while this process is running. The expected total is
    /// -1 if the total is not known. Use this method instead of key-value observing of `progress`, because Foundation on Linux
    /// has no key-value observing.
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
    /// Reports that the server accepted the WebSocket handshake. `protocol` is the subprotocol that the server chose, or `nil` if
    /// the server chose no subprotocol.
    func urlSession(
        _ session: URLSession, webSocketTask: URLSessionWebSocketTask, didOpenWithProtocol protocol: String?)

    /// Reports that the server or the app closed an open socket, or that the connection was lost. The next call reports the end
    /// of the task.
    func urlSession(
        _ session: URLSession, webSocketTask: URLSessionWebSocketTask, didCloseWith closeCode: URLSessionWebSocketTask.CloseCode,
        reason: Data?)
}

/// A delegate for stream tasks. Differs from Apple: stream tasks are not supported, so the delegate is never called.
public protocol URLSessionStreamDelegate: URLSessionTaskDelegate {}
