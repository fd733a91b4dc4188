import Foundation
import FoundationNetworking

// Apple's delegate protocols, with Apple's names. In Apple's protocols all methods but one are optional. In this module the methods
// have default implementations. The defaults of a task's own delegate call the session's delegate. All other defaults do nothing,
// or return the usual decision.

/// A delegate that receives the events of a session.
///
/// Methods that return a decision have two forms: with a completion handler, and `async`. If a delegate has both forms, the form
/// with the handler is called.
///
/// Differs from Apple: a method with a wrong name or type is not called, and the compiler does not report it. If a base class
/// conforms, only the methods that the base class declares are called. Declare the method in the base class, and `override` it in
/// the subclass.
public protocol URLSessionDelegate: AnyObject, SendableMetatype {
    /// Reports that the session has released its delegate and will send no more events. `error` is always `nil`.
    func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?)

    /// Asks for a credential for a server, if the task's delegate does not implement its challenge method. Ordinary sessions only.
    ///
    /// Differs from Apple: never called with `NSURLAuthenticationMethodServerTrust`. Certificates are always verified, so a
    /// delegate cannot pin a certificate or trust a private certificate.
    func urlSession(
        _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void)

    /// Asks for a credential for a server (`async` form).
    func urlSession(
        _ session: URLSession, didReceive challenge: URLAuthenticationChallenge
    ) async -> (URLSession.AuthChallengeDisposition, URLCredential?)

    /// Reports that the delegate has received all events of transfers that ended while this process was not running. Called in a
    /// process that the agent launched for the session, and after all such events. Background sessions only.
    func urlSessionDidFinishEvents(forBackgroundURLSession session: URLSession)
}

/// A delegate that receives the events of a session's tasks.
public protocol URLSessionTaskDelegate: URLSessionDelegate {
    /// Reports that a task was created. The task is suspended.
    func urlSession(_ session: URLSession, didCreateTask task: URLSessionTask)

    /// Asks for the request of a delayed task. Differs from Apple: never called. A task with an `earliestBeginDate` begins with its
    /// original request.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, willBeginDelayedRequest request: URLRequest,
        completionHandler: @escaping @Sendable (URLSession.DelayedRequestDisposition, URLRequest?) -> Void)

    /// Asks for the request of a delayed task (`async` form). Differs from Apple: never called.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, willBeginDelayedRequest request: URLRequest
    ) async -> (URLSession.DelayedRequestDisposition, URLRequest?)

    /// Reports that the server cannot be reached. The transfer begins when the server can be reached. The method is called once per
    /// task.
    func urlSession(_ session: URLSession, taskIsWaitingForConnectivity task: URLSessionTask)

    /// Asks for the request that follows a redirect. The handler takes the proposed request, another request, or `nil` if the
    /// redirect itself is the response. The method, headers, body and timeout of the chosen request are sent unchanged. If the
    /// redirect leads to another server, the proposed request contains no secrets of the first server. Ordinary sessions only: the
    /// agent follows all redirects of background sessions.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void)

    /// Asks for the request that follows a redirect (`async` form).
    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest
    ) async -> URLRequest?

    /// Asks for a credential for `Basic` or `Digest` authentication. Without a credential, the response with status 401 is the
    /// task's response. Called at most three times per task. Ordinary sessions only.
    ///
    /// Differs from Apple: never called about a certificate, so a delegate cannot pin certificates.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void)

    /// Asks for a credential (`async` form).
    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge
    ) async -> (URLSession.AuthChallengeDisposition, URLCredential?)

    /// Asks for the body of a streamed upload. The method is called at the start, and again after a redirect or a challenge. The
    /// handler takes a stream that is not open yet. Ordinary sessions only.
    func urlSession(
        _ session: URLSession, task: URLSessionTask,
        needNewBodyStream completionHandler: @escaping @Sendable (InputStream?) -> Void)

    /// Asks for the body of a streamed upload (`async` form).
    func urlSession(_ session: URLSession, needNewBodyStreamForTask task: URLSessionTask) async
        -> InputStream?

    /// Reports an informational response. Differs from Apple: never called.
    func urlSession(_ session: URLSession, task: URLSessionTask, didReceiveInformationalResponse response: HTTPURLResponse)

    /// Reports that bytes of the request body were sent. Called a few times a second, while this process is running. Use this
    /// method instead of key-value observing of `progress`, which Foundation on Linux does not have.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
        totalBytesExpectedToSend: Int64)

    /// Reports the metrics of a task. Called before ``urlSession(_:task:didCompleteWithError:)``.
    func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics)

    /// Reports the end of a task. `error` is `nil` if a response arrived, for any HTTP status.
    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?)
}

/// A delegate that receives the events of data tasks, and the responses to uploads.
public protocol URLSessionDataDelegate: URLSessionTaskDelegate {
    /// Asks for the next step after the response headers.
    ///
    /// Differs from Apple: in a background session the complete response is already stored. `.cancel` skips its body, and
    /// `.becomeDownload` has the effect of `.allow`. In an ordinary session ``URLSession/ResponseDisposition/becomeStream`` ends
    /// the task with `URLError.unsupportedURL`.
    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void)

    /// Asks for the next step after the response headers (`async` form).
    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse
    ) async -> URLSession.ResponseDisposition

    /// Reports that a download task replaces a data task, because the delegate chose `.becomeDownload`. No other events of the data
    /// task are reported. Ordinary sessions only.
    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didBecome downloadTask: URLSessionDownloadTask)

    /// Reports that a data task became a stream. Differs from Apple: never called.
    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didBecome streamTask: URLSessionStreamTask)

    /// Asks which response to store in the cache. The handler takes the proposed response, another response, or `nil` to store
    /// nothing. Ordinary sessions only.
    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, willCacheResponse proposedResponse: CachedURLResponse,
        completionHandler: @escaping @Sendable (CachedURLResponse?) -> Void)

    /// Asks which response to store in the cache (`async` form).
    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, willCacheResponse proposedResponse: CachedURLResponse
    ) async -> CachedURLResponse?

    /// Reports bytes of the response. In a background session all bytes are reported at once.
    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data)
}

/// A delegate that receives the events of downloads.
public protocol URLSessionDownloadDelegate: URLSessionTaskDelegate {
    /// Reports the file of a complete download. Move or read the file in this method, because the file is removed when this method
    /// returns. If the download has a ``URLSessionDownloadTask/destination``, the file is already at that path and is not removed.
    func urlSession(_ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL)

    /// Reports that bytes arrived. Called a few times a second, while this process is running. The expected total is -1 if the
    /// total is not known. Use this method instead of key-value observing of `progress`, which Foundation on Linux does not have.
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
    /// Reports that the server accepted the handshake. The protocol is the subprotocol that the server chose, or `nil` if the
    /// server chose no subprotocol.
    func urlSession(
        _ session: URLSession, webSocketTask: URLSessionWebSocketTask, didOpenWithProtocol protocol: String?)

    /// Reports that either side closed an open socket, or that the connection was lost. The end of the task is reported next.
    func urlSession(
        _ session: URLSession, webSocketTask: URLSessionWebSocketTask, didCloseWith closeCode: URLSessionWebSocketTask.CloseCode,
        reason: Data?)
}

/// A delegate for stream tasks. Differs from Apple: stream tasks are not supported, so the delegate is never called.
public protocol URLSessionStreamDelegate: URLSessionTaskDelegate {}
