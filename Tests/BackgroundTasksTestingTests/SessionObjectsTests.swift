import BackgroundRuntime
import BackgroundTasksTesting
import BackgroundTransfer
import Foundation
import Synchronization
import Testing

/// Session objects of one identifier in one process.
@Suite(.timeLimit(.minutes(30))) struct SessionObjectsTests {
    private final class Heard: NSObject, URLSessionDownloadDelegate, Sendable {
        let ends = Mutex<[String]>([])
        let invalid = AsyncStream.makeStream(of: Void.self)

        let files = Mutex<[URL]>([])
        let errors = Mutex<[URLError.Code]>([])
        let whenFinished: @Sendable (URL) -> Void

        init(whenFinished: @escaping @Sendable (URL) -> Void = { _ in }) { self.whenFinished = whenFinished }

        func urlSession(_ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL) {
            files.withLock { $0.append(location) }
            whenFinished(location)
        }

        func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
            ends.withLock { $0.append(task.taskDescription ?? "") }
            if let error = error as? URLError { errors.withLock { $0.append(error.code) } }
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

    /// The agent decodes nothing, so the app would get bytes that it cannot read.
    @Test func `a background session asks for no coding`() async throws {
        try await TestDriver.run(permitting: []) { driver in
            let server = driver.network.server("https://api.test")
            server.route(nil, "/file", .status(200, body: "all of it"))
            let configuration = URLSessionConfiguration.background(withIdentifier: "files")
            configuration.httpAdditionalHeaders = ["Accept-Encoding": "br;q=1.0, gzip;q=0.9, deflate;q=0.8"]
            let session = URLSession(configuration: configuration, delegate: Heard(), delegateQueue: nil)
            try begin("file", of: session)
            let request = URLRequest(url: try #require(URL(string: "https://api.test/file")))
            session.uploadTask(with: request, from: Data([1])).resume()
            try await driver.advance(by: .seconds(60))
            let sent = server.requests().map { $0.headers["Accept-Encoding"] }
            #expect(sent == ["identity", "identity"])
        }
    }

    private static func spool() -> [String] {
        (try? FileManager.default.contentsOfDirectory(atPath: AppRuntime.shared.directories.spool.path)) ?? []
    }

    /// An app moves what it is told of, and may die before that is known: it is told again, and the file is there again.
    @Test func whatAnAppMovesIsThereUntilItIsKnownToBeTold() async throws {
        try await TestDriver.run(permitting: []) { driver in
            driver.network.server("https://api.test").route(nil, "/file", .status(200, body: .text("all of it")))
            let place = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
            defer { try? FileManager.default.removeItem(at: place) }
            let left = Mutex<[String]>([])
            let heard = Heard { location in
                do { try FileManager.default.moveItem(at: location, to: place) } catch { Issue.record(error) }
                left.withLock { $0 = Self.spool() }
            }
            let session = URLSession(configuration: .background(withIdentifier: "files"), delegate: heard, delegateQueue: nil)
            try begin("file", of: session)
            try await driver.advance(by: .seconds(60))
            #expect(try String(contentsOf: place, encoding: .utf8) == "all of it")
            // Its part may still have a name, too.
            #expect(left.withLock { !$0.isEmpty })
            // Told and known to be told, nothing of it is left.
            #expect(Self.spool() == [])
        }
    }

    @Test func whatItDoesNotMoveIsRemoved() async throws {
        try await TestDriver.run(permitting: []) { driver in
            driver.network.server("https://api.test").route(nil, "/file", .status(200, body: .text("all of it")))
            let heard = Heard { #expect((try? String(contentsOf: $0, encoding: .utf8)) == "all of it") }
            let session = URLSession(configuration: .background(withIdentifier: "files"), delegate: heard, delegateQueue: nil)
            try begin("file", of: session)
            try await driver.advance(by: .seconds(60))
            let file = try #require(heard.files.withLock { $0.first })
            #expect(!FileManager.default.fileExists(atPath: file.path))
            #expect(Self.spool() == [])
        }
    }

    /// A ledger from a backup speaks of a file that went with its first telling.
    @Test func aFileThatIsGoneIsAnError() async throws {
        try await TestDriver.run(permitting: []) { driver in
            driver.network.server("https://api.test").route(nil, "/file", .status(200, body: .text("all of it")))
            let configuration = URLSessionConfiguration.background(withIdentifier: "files")
            // Without a delegate nobody is told.
            let silent = URLSession(configuration: configuration)
            try begin("file", of: silent)
            try await driver.advance(by: .seconds(60))
            let names = Self.spool()
            #expect(names.count == 1)
            for name in names {
                try FileManager.default.removeItem(at: AppRuntime.shared.directories.spool.appendingPathComponent(name))
            }
            silent.finishTasksAndInvalidate()
            let heard = Heard()
            let session = URLSession(configuration: configuration, delegate: heard, delegateQueue: nil)
            try await driver.advance(by: .seconds(60))
            #expect(heard.ends.withLock { $0 } == ["file"])
            #expect(heard.errors.withLock { $0 } == [.fileDoesNotExist])
            #expect(heard.files.withLock { $0 } == [])
            session.invalidateAndCancel()
        }
    }
}
