import Foundation
import FoundationNetworking

// The default implementations of the delegate methods. A default implementation does nothing, or returns the usual decision. If a
// task has its own delegate, the default implementation calls the session's delegate. A method that returns a decision has a form
// with a handler and an async form. The default implementation of the form with a handler calls the async form. The default
// implementation of the async form calls the session's delegate.

/// Passes a handler to `ask`, waits until the handler is called, and returns the handler's argument. A second call of the handler
/// has no effect.
private func firstAnswer<Value>(_ ask: (@escaping @Sendable (Value) -> Void) -> Void) async -> Value {
    let first = FirstDecision()
    return await withCheckedContinuation { answered in
        ask { value in
            nonisolated(unsafe) let value = value
            if first.isThis { answered.resume(returning: value) }
        }
    }
}

extension URLSessionDelegate {
    public func urlSession(
        _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        nonisolated(unsafe) let receiver: any URLSessionDelegate = self
        Task {
            let (disposition, credential) = await receiver.urlSession(session, didReceive: challenge)
            completionHandler(disposition, credential)
        }
    }
    public func urlSession(
        _ session: URLSession, didReceive challenge: URLAuthenticationChallenge
    ) async -> (URLSession.AuthChallengeDisposition, URLCredential?) { (.performDefaultHandling, nil) }
    public func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) {}
    public func urlSessionDidFinishEvents(forBackgroundURLSession session: URLSession) {}
}

extension URLSessionTaskDelegate {
    public func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        nonisolated(unsafe) let receiver: any URLSessionTaskDelegate = self
        Task {
            completionHandler(
                await receiver.urlSession(session, task: task, willPerformHTTPRedirection: response, newRequest: request))
        }
    }
    public func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest
    ) async -> URLRequest? {
        guard let next = session.delegate(of: task, after: self) else { return request }
        return await firstAnswer {
            next.urlSession(
                session, task: task, willPerformHTTPRedirection: response, newRequest: request, completionHandler: $0)
        }
    }

    public func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        nonisolated(unsafe) let receiver: any URLSessionTaskDelegate = self
        Task {
            let (disposition, credential) = await receiver.urlSession(session, task: task, didReceive: challenge)
            completionHandler(disposition, credential)
        }
    }
    public func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge
    ) async -> (URLSession.AuthChallengeDisposition, URLCredential?) {
        let next = session.delegate(of: task, after: self)
        return await firstAnswer {
            (answered: @escaping @Sendable ((URLSession.AuthChallengeDisposition, URLCredential?)) -> Void) in
            let answer: @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void = { answered(($0, $1)) }
            if let next {
                next.urlSession(session, task: task, didReceive: challenge, completionHandler: answer)
            } else {
                urlSession(session, didReceive: challenge, completionHandler: answer)
            }
        }
    }

    public func urlSession(
        _ session: URLSession, task: URLSessionTask,
        needNewBodyStream completionHandler: @escaping @Sendable (InputStream?) -> Void
    ) {
        nonisolated(unsafe) let receiver: any URLSessionTaskDelegate = self
        Task { completionHandler(await receiver.urlSession(session, needNewBodyStreamForTask: task)) }
    }
    public func urlSession(_ session: URLSession, needNewBodyStreamForTask task: URLSessionTask) async
        -> InputStream?
    {
        guard let next = session.delegate(of: task, after: self) else { return nil }
        return await firstAnswer { next.urlSession(session, task: task, needNewBodyStream: $0) }
    }

    public func urlSession(_ session: URLSession, didCreateTask task: URLSessionTask) {
        session.delegate(of: task, after: self)?.urlSession(session, didCreateTask: task)
    }
    public func urlSession(
        _ session: URLSession, task: URLSessionTask, willBeginDelayedRequest request: URLRequest,
        completionHandler: @escaping @Sendable (URLSession.DelayedRequestDisposition, URLRequest?) -> Void
    ) { completionHandler(.continueLoading, nil) }
    public func urlSession(
        _ session: URLSession, task: URLSessionTask, willBeginDelayedRequest request: URLRequest
    ) async -> (URLSession.DelayedRequestDisposition, URLRequest?) { (.continueLoading, nil) }
    public func urlSession(_ session: URLSession, taskIsWaitingForConnectivity task: URLSessionTask) {
        session.delegate(of: task, after: self)?.urlSession(session, taskIsWaitingForConnectivity: task)
    }
    public func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceiveInformationalResponse response: HTTPURLResponse
    ) {}
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
        nonisolated(unsafe) let receiver: any URLSessionDataDelegate = self
        Task { completionHandler(await receiver.urlSession(session, dataTask: dataTask, didReceive: response)) }
    }
    public func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse
    ) async -> URLSession.ResponseDisposition {
        guard let next = session.delegate(of: dataTask, after: self) as? any URLSessionDataDelegate else { return .allow }
        return await firstAnswer {
            next.urlSession(session, dataTask: dataTask, didReceive: response, completionHandler: $0)
        }
    }

    public func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, willCacheResponse proposedResponse: CachedURLResponse,
        completionHandler: @escaping @Sendable (CachedURLResponse?) -> Void
    ) {
        nonisolated(unsafe) let receiver: any URLSessionDataDelegate = self
        Task {
            completionHandler(await receiver.urlSession(session, dataTask: dataTask, willCacheResponse: proposedResponse))
        }
    }
    public func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, willCacheResponse proposedResponse: CachedURLResponse
    ) async -> CachedURLResponse? {
        guard let next = session.delegate(of: dataTask, after: self) as? any URLSessionDataDelegate else {
            return proposedResponse
        }
        return await firstAnswer {
            next.urlSession(session, dataTask: dataTask, willCacheResponse: proposedResponse, completionHandler: $0)
        }
    }

    public func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        let next = session.delegate(of: dataTask, after: self) as? any URLSessionDataDelegate
        next?.urlSession(session, dataTask: dataTask, didReceive: data)
    }
    public func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didBecome downloadTask: URLSessionDownloadTask
    ) {
        let next = session.delegate(of: dataTask, after: self) as? any URLSessionDataDelegate
        next?.urlSession(session, dataTask: dataTask, didBecome: downloadTask)
    }
    public func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didBecome streamTask: URLSessionStreamTask) {}
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

extension URLSessionWebSocketDelegate {
    public func urlSession(
        _ session: URLSession, webSocketTask: URLSessionWebSocketTask, didOpenWithProtocol protocol: String?
    ) {
        let next = session.delegate(of: webSocketTask, after: self) as? any URLSessionWebSocketDelegate
        next?.urlSession(session, webSocketTask: webSocketTask, didOpenWithProtocol: `protocol`)
    }
    public func urlSession(
        _ session: URLSession, webSocketTask: URLSessionWebSocketTask, didCloseWith closeCode: URLSessionWebSocketTask.CloseCode,
        reason: Data?
    ) {
        let next = session.delegate(of: webSocketTask, after: self) as? any URLSessionWebSocketDelegate
        next?.urlSession(session, webSocketTask: webSocketTask, didCloseWith: closeCode, reason: reason)
    }
}
