// Delegates in the forms of real code: mutable classes that are not final, conformances in extensions, and calls of optional
// methods. The code must compile in Swift 6 mode.
import BackgroundTransfer
import Testing
import UserNotifications

class TransferCenter: NSObject {
    var progress: [Int: Double] = [:]
    weak var forward: (any URLSessionDownloadDelegate)?
    var heard: [String] = []
}

extension TransferCenter: URLSessionDownloadDelegate {
    func urlSession(_ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL) {
        heard.append("file")
        forward?.urlSession(session, downloadTask: downloadTask, didFinishDownloadingTo: location)
    }

    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didWriteData bytesWritten: Int64, totalBytesWritten: Int64,
        totalBytesExpectedToWrite: Int64
    ) {
        progress[downloadTask.taskIdentifier] = Double(totalBytesWritten) / Double(max(1, totalBytesExpectedToWrite))
        forward?.urlSession?(
            session, downloadTask: downloadTask, didWriteData: bytesWritten, totalBytesWritten: totalBytesWritten,
            totalBytesExpectedToWrite: totalBytesExpectedToWrite)
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        heard.append("end")
        forward?.urlSession?(session, task: task, didCompleteWithError: error)
    }

    func urlSessionDidFinishEvents(forBackgroundURLSession session: URLSession) {
        forward?.urlSessionDidFinishEvents?(forBackgroundURLSession: session)
    }
}

/// A base class that conforms to the protocol, and a subclass that overrides one method and adds another method.
class BaseDelegate: NSObject, URLSessionTaskDelegate {
    var heard: [String] = []

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        heard.append("base")
    }
}

class DerivedDelegate: BaseDelegate {
    override func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        heard.append("derived")
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics) {
        heard.append("metrics")
    }
}

/// A delegate that forwards each call to another delegate.
class ForwardingDelegate: NSObject, URLSessionDataDelegate {
    var next: (any URLSessionDataDelegate)?

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
        guard let next else { return completionHandler(.allow) }
        next.urlSession?(session, dataTask: dataTask, didReceive: response, completionHandler: completionHandler)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        next?.urlSession?(session, dataTask: dataTask, didReceive: data)
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        (next as (any URLSessionTaskDelegate)?)?.urlSession?(
            session, task: task, didReceive: challenge, completionHandler: completionHandler)
    }
}

@MainActor final class ScreenModel: NSObject, URLSessionTaskDelegate {
    var isAllowed = false

    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest
    ) async -> URLRequest? { isAllowed ? request : nil }
}

@Suite struct DelegateShapeTests {
    /// The test uses a data URL, which contains the response, so no network is needed.
    @Test func `a forwarding delegate receives and forwards the calls`() async throws {
        let (center, outer) = (TransferCenter(), TransferCenter())
        outer.forward = center
        let session = URLSession(configuration: .ephemeral, delegate: outer, delegateQueue: nil)
        let address = try #require(URL(string: "data:,hello"))
        session.downloadTask(with: address).resume()
        session.finishTasksAndInvalidate()
        while session.delegate != nil { await Task.yield() }
        await withCheckedContinuation { done in session.delegateQueue.addOperation { done.resume() } }
        #expect(outer.heard == ["file", "end"] && center.heard == ["file", "end"])
    }

    /// On iOS the subclass would also receive the metrics. In this library, the subclass receives only calls of methods that
    /// the base class has.
    @Test func `a subclass of a delegate receives only calls of methods that it overrides`() async throws {
        let derived = DerivedDelegate()
        let session = URLSession(configuration: .ephemeral, delegate: derived, delegateQueue: nil)
        session.dataTask(with: try #require(URL(string: "data:,hello"))).resume()
        session.finishTasksAndInvalidate()
        while session.delegate != nil { await Task.yield() }
        await withCheckedContinuation { done in session.delegateQueue.addOperation { done.resume() } }
        #expect(derived.heard == ["derived"])
    }

    @Test func `properties that exist on Darwin can be used`() throws {
        let configuration = URLSessionConfiguration()
        configuration.multipathServiceType = .handover
        configuration.tlsMinimumSupportedProtocolVersion = .TLSv13
        configuration.requiresDNSSECValidation = true
        #expect(Foundation.URLError(.cancelled).backgroundTaskCancelledReason == nil)
        let url = try #require(URL(string: "https://example.org/"))
        var request = URLRequest(url: url)
        (request.allowsExpensiveNetworkAccess, request.assumesHTTP3Capable) = (false, true)
        #expect(!request.allowsExpensiveNetworkAccess && request.allowsConstrainedNetworkAccess && request.assumesHTTP3Capable)
        request.allowsExpensiveNetworkAccess = true
        #expect(request.allowsExpensiveNetworkAccess)
        let task = URLSession.shared.streamTask(withHostName: "example.org", port: 7)
        #expect((task.error as? URLError)?.code == .unsupportedURL)
        let data = URLSession.shared.dataTask(with: url)
        data.prefersIncrementalDelivery = false
        #expect(NSString.localizedUserNotificationString(forKey: "k", arguments: nil) == "k")
        data.cancel()
    }
}
