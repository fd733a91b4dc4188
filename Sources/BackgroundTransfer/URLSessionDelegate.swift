import Foundation
import FoundationNetworking

/// Hears of a session.
public protocol URLSessionDelegate: AnyObject, Sendable {
    /// Every event that was waiting when the session was made has been delivered. Background sessions only.
    func urlSessionDidFinishEvents(forBackgroundURLSession session: URLSession)
}

/// Hears of the tasks of a session.
public protocol URLSessionTaskDelegate: URLSessionDelegate {
    /// The last word on a task; `error` is `nil` when an answer arrived, whatever its status.
    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?)
}

/// Hears of downloads.
public protocol URLSessionDownloadDelegate: URLSessionTaskDelegate {
    /// The file exists until this method returns: move it or read it inside.
    func urlSession(_ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL)
}

extension URLSessionDelegate {
    public func urlSessionDidFinishEvents(forBackgroundURLSession session: URLSession) {}
}

extension URLSessionTaskDelegate {
    public func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {}
}
