import BackgroundTasksTesting
import BackgroundTransfer
import Foundation
import Synchronization
import Testing

/// Session objects of one identifier in one process.
@Suite(.timeLimit(.minutes(5))) struct SessionObjectsTests {
    private final class Heard: NSObject, URLSessionDownloadDelegate {
        let ends = Mutex<[String]>([])
        let invalid = AsyncStream.makeStream(of: Void.self)

        func urlSession(_ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL) {}

        func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
            ends.withLock { $0.append(task.taskDescription ?? "") }
        }

        func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) { invalid.continuation.yield() }
    }

    private func begin(_ name: String, of session: URLSession) throws {
        let task = session.downloadTask(with: try #require(URL(string: "https://api.test/\(name)")))
        task.taskDescription = name
        task.resume()
    }

    /// One is ending, its tasks under way, when the next of its name is made: each hears of its own tasks, and the first ends.
    @Test func oneThatEndsHearsItsOwn() async throws {
        try await TestDriver.run(permitting: []) { driver in
            let server = driver.network.server("https://api.test")
            server.route(nil, "/first", .status(200, body: "1"))
            server.route(nil, "/second", .status(200, body: "2"))
            let (first, second) = (Heard(), Heard())
            let configuration = URLSessionConfiguration.background(withIdentifier: "files")
            let ending = URLSession(configuration: configuration, delegate: first, delegateQueue: nil)
            try begin("first", of: ending)
            ending.finishTasksAndInvalidate()
            let next = URLSession(configuration: configuration, delegate: second, delegateQueue: nil)
            try begin("second", of: next)
            try await driver.advance(by: .seconds(60))
            var invalid = first.invalid.stream.makeAsyncIterator()
            #expect(await invalid.next() != nil)
            #expect(first.ends.withLock { $0 } == ["first"])
            next.finishTasksAndInvalidate()
            var over = second.invalid.stream.makeAsyncIterator()
            #expect(await over.next() != nil)
            #expect(second.ends.withLock { $0 } == ["second"])
        }
    }
}
