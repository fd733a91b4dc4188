import Foundation
import FoundationNetworking

// On iOS, delegate methods are optional, and code that forwards a call has this form: `delegate?.urlSession?(session, task: task,
// didCompleteWithError: error)`. In this module, delegate methods are not optional, because every method has a default
// implementation. The types of this file accept calls in the form above and forward them.

/// The methods of ``URLSessionDelegate`` as optional methods. Code for iOS calls these methods with `?`.
public struct URLSessionDelegateCalls {
    let delegate: any URLSessionDelegate

    /// See ``URLSessionDelegate/urlSession(_:didBecomeInvalidWithError:)``.
    public func callAsFunction(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) {
        delegate.urlSession(session, didBecomeInvalidWithError: error)
    }

    /// See ``URLSessionDelegate/urlSession(_:didReceive:completionHandler:)``.
    public func callAsFunction(
        _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) { delegate.urlSession(session, didReceive: challenge, completionHandler: completionHandler) }
}

/// The method ``URLSessionDelegate/urlSessionDidFinishEvents(forBackgroundURLSession:)`` as an optional method. Code for iOS
/// calls this method with `?`.
public struct URLSessionFinishEventsCall {
    let delegate: any URLSessionDelegate

    /// See ``URLSessionDelegate/urlSessionDidFinishEvents(forBackgroundURLSession:)``.
    public func callAsFunction(forBackgroundURLSession session: URLSession) {
        delegate.urlSessionDidFinishEvents(forBackgroundURLSession: session)
    }
}

/// The methods of ``URLSessionTaskDelegate`` as optional methods. Code for iOS calls these methods with `?`.
public struct URLSessionTaskDelegateCalls {
    let delegate: any URLSessionTaskDelegate

    /// See ``URLSessionTaskDelegate/urlSession(_:didCreateTask:)``.
    public func callAsFunction(
        _ session: URLSession, didCreateTask task: URLSessionTask
    ) {
        delegate.urlSession(
            session, didCreateTask: task)
    }

    /// See ``URLSessionTaskDelegate/urlSession(_:taskIsWaitingForConnectivity:)``.
    public func callAsFunction(
        _ session: URLSession, taskIsWaitingForConnectivity task: URLSessionTask
    ) {
        delegate.urlSession(
            session, taskIsWaitingForConnectivity: task)
    }

    /// See ``URLSessionTaskDelegate/urlSession(_:task:willBeginDelayedRequest:completionHandler:)``.
    public func callAsFunction(
        _ session: URLSession, task: URLSessionTask, willBeginDelayedRequest request: URLRequest,
        completionHandler: @escaping @Sendable (URLSession.DelayedRequestDisposition, URLRequest?) -> Void
    ) {
        delegate.urlSession(
            session, task: task, willBeginDelayedRequest: request, completionHandler: completionHandler)
    }

    /// See ``URLSessionTaskDelegate/urlSession(_:task:willPerformHTTPRedirection:newRequest:completionHandler:)``.
    public func callAsFunction(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        delegate.urlSession(
            session, task: task, willPerformHTTPRedirection: response, newRequest: request, completionHandler: completionHandler)
    }

    /// See ``URLSessionTaskDelegate/urlSession(_:task:didReceive:completionHandler:)``.
    public func callAsFunction(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        delegate.urlSession(
            session, task: task, didReceive: challenge, completionHandler: completionHandler)
    }

    /// See ``URLSessionTaskDelegate/urlSession(_:task:needNewBodyStream:)``.
    public func callAsFunction(
        _ session: URLSession, task: URLSessionTask,
        needNewBodyStream completionHandler: @escaping @Sendable (InputStream?) -> Void
    ) {
        delegate.urlSession(
            session, task: task, needNewBodyStream: completionHandler)
    }

    /// See ``URLSessionTaskDelegate/urlSession(_:task:didSendBodyData:totalBytesSent:totalBytesExpectedToSend:)``.
    public func callAsFunction(
        _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
        totalBytesExpectedToSend: Int64
    ) {
        delegate.urlSession(
            session, task: task, didSendBodyData: bytesSent, totalBytesSent: totalBytesSent,
            totalBytesExpectedToSend: totalBytesExpectedToSend)
    }

    /// See ``URLSessionTaskDelegate/urlSession(_:task:didFinishCollecting:)``.
    public func callAsFunction(
        _ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics
    ) {
        delegate.urlSession(
            session, task: task, didFinishCollecting: metrics)
    }

    /// See ``URLSessionTaskDelegate/urlSession(_:task:didCompleteWithError:)``.
    public func callAsFunction(
        _ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?
    ) {
        delegate.urlSession(
            session, task: task, didCompleteWithError: error)
    }
}

/// The methods of ``URLSessionDataDelegate`` as optional methods. Code for iOS calls these methods with `?`.
public struct URLSessionDataDelegateCalls {
    let delegate: any URLSessionDataDelegate

    /// See ``URLSessionDataDelegate/urlSession(_:dataTask:didReceive:completionHandler:)``.
    public func callAsFunction(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
        delegate.urlSession(
            session, dataTask: dataTask, didReceive: response, completionHandler: completionHandler)
    }

    /// Passes received bytes of the response to the delegate's method `urlSession(_:dataTask:didReceive:)`.
    public func callAsFunction(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data
    ) {
        delegate.urlSession(
            session, dataTask: dataTask, didReceive: data)
    }

    /// Reports to the method `urlSession(_:dataTask:didBecome:)` that a download replaces the task.
    public func callAsFunction(
        _ session: URLSession, dataTask: URLSessionDataTask, didBecome downloadTask: URLSessionDownloadTask
    ) {
        delegate.urlSession(
            session, dataTask: dataTask, didBecome: downloadTask)
    }

    /// See ``URLSessionDataDelegate/urlSession(_:dataTask:willCacheResponse:completionHandler:)``.
    public func callAsFunction(
        _ session: URLSession, dataTask: URLSessionDataTask, willCacheResponse proposedResponse: CachedURLResponse,
        completionHandler: @escaping @Sendable (CachedURLResponse?) -> Void
    ) {
        delegate.urlSession(
            session, dataTask: dataTask, willCacheResponse: proposedResponse, completionHandler: completionHandler)
    }
}

/// The methods of ``URLSessionDownloadDelegate`` as optional methods. Code for iOS calls these methods with `?`.
public struct URLSessionDownloadDelegateCalls {
    let delegate: any URLSessionDownloadDelegate

    /// See ``URLSessionDownloadDelegate/urlSession(_:downloadTask:didFinishDownloadingTo:)``.
    public func callAsFunction(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL
    ) {
        delegate.urlSession(
            session, downloadTask: downloadTask, didFinishDownloadingTo: location)
    }

    /// See ``URLSessionDownloadDelegate/urlSession(_:downloadTask:didWriteData:totalBytesWritten:totalBytesExpectedToWrite:)``.
    public func callAsFunction(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didWriteData bytesWritten: Int64,
        totalBytesWritten: Int64, totalBytesExpectedToWrite: Int64
    ) {
        delegate.urlSession(
            session, downloadTask: downloadTask, didWriteData: bytesWritten, totalBytesWritten: totalBytesWritten,
            totalBytesExpectedToWrite: totalBytesExpectedToWrite)
    }

    /// See ``URLSessionDownloadDelegate/urlSession(_:downloadTask:didResumeAtOffset:expectedTotalBytes:)``.
    public func callAsFunction(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didResumeAtOffset fileOffset: Int64,
        expectedTotalBytes: Int64
    ) {
        delegate.urlSession(
            session, downloadTask: downloadTask, didResumeAtOffset: fileOffset, expectedTotalBytes: expectedTotalBytes)
    }
}

/// The methods of ``URLSessionWebSocketDelegate`` as optional methods. Code for iOS calls these methods with `?`.
public struct URLSessionWebSocketDelegateCalls {
    let delegate: any URLSessionWebSocketDelegate

    /// See ``URLSessionWebSocketDelegate/urlSession(_:webSocketTask:didOpenWithProtocol:)``.
    public func callAsFunction(
        _ session: URLSession, webSocketTask: URLSessionWebSocketTask, didOpenWithProtocol protocol: String?
    ) {
        delegate.urlSession(session, webSocketTask: webSocketTask, didOpenWithProtocol: `protocol`)
    }

    /// See ``URLSessionWebSocketDelegate/urlSession(_:webSocketTask:didCloseWith:reason:)``.
    public func callAsFunction(
        _ session: URLSession, webSocketTask: URLSessionWebSocketTask, didCloseWith closeCode: URLSessionWebSocketTask.CloseCode,
        reason: Data?
    ) {
        delegate.urlSession(session, webSocketTask: webSocketTask, didCloseWith: closeCode, reason: reason)
    }
}

extension URLSessionDelegate {
    /// The delegate's methods as optional methods, so that calls of the form `delegate.urlSession?(…)` compile.
    public var urlSession: URLSessionDelegateCalls? { URLSessionDelegateCalls(delegate: self) }

    /// The delegate's method as an optional method, so that calls of the form
    /// `delegate.urlSessionDidFinishEvents?(forBackgroundURLSession: session)` compile.
    public var urlSessionDidFinishEvents: URLSessionFinishEventsCall? { URLSessionFinishEventsCall(delegate: self) }
}

extension URLSessionTaskDelegate {
    /// The delegate's methods as optional methods, so that calls of the form `delegate.urlSession?(…)` compile.
    public var urlSession: URLSessionTaskDelegateCalls? { URLSessionTaskDelegateCalls(delegate: self) }
}

extension URLSessionDataDelegate {
    /// The delegate's methods as optional methods, so that calls of the form `delegate.urlSession?(…)` compile.
    public var urlSession: URLSessionDataDelegateCalls? { URLSessionDataDelegateCalls(delegate: self) }
}

extension URLSessionDownloadDelegate {
    /// The delegate's methods as optional methods, so that calls of the form `delegate.urlSession?(…)` compile.
    public var urlSession: URLSessionDownloadDelegateCalls? { URLSessionDownloadDelegateCalls(delegate: self) }
}

extension URLSessionWebSocketDelegate {
    /// The delegate's methods as optional methods, so that calls of the form `delegate.urlSession?(…)` compile.
    public var urlSession: URLSessionWebSocketDelegateCalls? { URLSessionWebSocketDelegateCalls(delegate: self) }
}
