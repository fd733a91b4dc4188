import BackgroundRuntime
import BackgroundTasks
import BackgroundTasksTesting
@testable import BackgroundTransfer
import Foundation
import ProcessSupport
import Synchronization
import Testing

/// Tests of several session objects with one identifier in one process.
@Suite(.timeLimit(.minutes(30))) struct SessionObjectsTests {
    private final class ReceivedEvents: NSObject, URLSessionDownloadDelegate, Sendable {
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

    /// A second session with the same identifier is created while the first session waits for its tasks.
    @Test func `a session that is ending receives the ends of its tasks only`() async throws {
        try await TestDriver.run(permitting: []) { driver in
            let server = driver.network.server("https://api.test")
            server.route(nil, "/first", .status(200, body: "1"))
            server.route(nil, "/second", .status(200, body: "2"))
            let (first, second) = (ReceivedEvents(), ReceivedEvents())
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

    /// A delegate that lists the tasks of its session when it is called for the end of a task.
    private final class Listing: NSObject, URLSessionTaskDelegate, Sendable {
        let ended = Mutex<[URLSessionTask]>([])
        let listed = Mutex<[[URLSessionTask.State]]>([])

        func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
            let states = session.engine.allTasks().map(\.state)
            ended.withLock { $0.append(task) }
            listed.withLock { $0.append(states) }
        }
    }

    @Test func `a task that ended keeps its response when its row is missing`() async throws {
        try await TestDriver.run(permitting: []) { driver in
            driver.network.server("https://api.test").route(nil, "/photo", .status(201, headers: ["Location": "/photos/1"]))
            let heard = Listing()
            let session = URLSession(configuration: Self.quietConfiguration, delegate: heard, delegateQueue: nil)
            let url = try #require(URL(string: "https://api.test/photo"))
            session.uploadTask(with: URLRequest(url: url), from: Data("photo".utf8)).resume()
            try await driver.advance(by: .seconds(60))
            let task = try #require(heard.ended.withLock { $0 }.first)
            task.facts.withLock { $0.entry = .row(-1) }
            #expect((task.response as? HTTPURLResponse)?.statusCode == 201)
            #expect(task.state == .completed && task.countOfBytesSent == 5)
        }
    }

    /// A delegate that decides about response headers later.
    private final class Deciding: NSObject, URLSessionDataDelegate, Sendable {
        typealias Decision = @Sendable (URLSession.ResponseDisposition) -> Void
        let decisions = AsyncStream.makeStream(of: Decision.self)
        let ends = AsyncStream.makeStream(of: Void.self)
        let calls = Mutex<[String]>([])

        func urlSession(
            _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
            completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
        ) { decisions.continuation.yield(completionHandler) }

        func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
            calls.withLock { $0.append("end") }
        }

        func urlSessionDidFinishEvents(forBackgroundURLSession session: URLSession) {
            calls.withLock { $0.append("all") }
            ends.continuation.yield()
        }
    }

    /// Another process began the upload. The session can therefore report that all events were delivered, although the delegate
    /// has not yet received the end of the upload.
    @Test func `an end is delivered when the delegate has received it, even after a late decision`() async throws {
        try await TestDriver.run(permitting: []) { driver in
            driver.network.server("https://api.test").route("PUT", "/photo", .status(201, body: "stored"))
            try await uploadInACommand(to: try #require(URL(string: "https://api.test/photo")), driver)
            let (delegate, queue) = (Deciding(), OperationQueue())
            queue.maxConcurrentOperationCount = 1
            let session = URLSession(configuration: Self.quietConfiguration, delegate: delegate, delegateQueue: queue)
            var decisions = delegate.decisions.stream.makeAsyncIterator()
            let decide = try #require(await decisions.next())
            // After this operation, the session no longer waits for the delegate's decision.
            await withCheckedContinuation { done in queue.addOperation { done.resume() } }
            func undelivered() throws -> Int { try AppRuntime.shared.ledger().read { try $0.undeliveredEvents().count } }
            #expect(await session.allTasks.count == 1)
            #expect(try undelivered() == 1 && delegate.calls.withLock { $0.isEmpty })
            session.finishTasksAndInvalidate()
            decide(.allow)
            var ends = delegate.ends.stream.makeAsyncIterator()
            _ = await ends.next()
            #expect(delegate.calls.withLock { $0 } == ["end", "all"])
            try await driver.settle()
            #expect(try undelivered() == 0)
        }
    }

    /// A configuration of background sessions. The agent does not launch the app when tasks of a session with this configuration
    /// end.
    private static var quietConfiguration: URLSessionConfiguration {
        let configuration = URLSessionConfiguration.background(withIdentifier: "files")
        configuration.sessionSendsLaunchEvents = false
        return configuration
    }

    /// Begins an upload in another process. The upload ends after the process has exited.
    private func uploadInACommand(to url: URL, _ driver: TestDriver) async throws {
        try await driver.run(
            command: {
                let session = URLSession(configuration: Self.quietConfiguration)
                session.uploadTask(with: URLRequest(url: url), from: Data("photo".utf8)).resume()
            }, environment: [:])
        try await driver.advance(by: .seconds(60))
    }

    /// Another process began the task, and exited before the task ended. If an upload failed, the agent keeps its copy of the
    /// file, so that the upload can be retried.
    @Test(arguments: [(201, TransferReport.State.completed), (403, .failed)])
    func `a task whose end was not delivered stays in the list`(_ status: Int, _ end: TransferReport.State) async throws {
        try await TestDriver.run(permitting: []) { driver in
            let server = driver.network.server("https://api.test")
            server.route("PUT", "/photo", .status(status).after(.delay(10)))
            let url = try #require(URL(string: "https://api.test/photo"))
            try await uploadInACommand(to: url, driver)
            #expect(driver.ledger.transfers.map(\.state) == [end])

            let session = URLSession(configuration: Self.quietConfiguration)
            let task = try #require(await session.tasks.1.first)
            #expect(task.state == .completed)
            task.cancel()
            task.suspend()
            task.resume()
            try await driver.settle()
            #expect(task.state == .completed && driver.ledger.transfers.map(\.state) == [end])
            #expect(await session.allTasks == [task])

            let delegate = Listing()
            let heard = URLSession(configuration: Self.quietConfiguration, delegate: delegate, delegateQueue: nil)
            try await driver.advance(by: .seconds(1))
            #expect(delegate.ended.withLock { $0 } == [task] && delegate.listed.withLock { $0 } == [[.completed]])
            #expect(await heard.allTasks.isEmpty)
            #expect(server.requests().count == 1)
            heard.finishTasksAndInvalidate()
        }
    }

    /// When the app requested the list of tasks, the ledger could not be read.
    @Test func `a new task is refused if the list that the app received may be incomplete`() async throws {
        try await TestDriver.run(permitting: []) { driver in
            driver.network.server("https://api.test").route("PUT", "/photo", .status(201).after(.delay(10)))
            let url = try #require(URL(string: "https://api.test/photo"))
            let session = URLSession(configuration: Self.quietConfiguration)
            let engine = try #require(session.engine as? BackgroundSession)
            func upload() -> URLSessionUploadTask {
                let task = session.uploadTask(with: URLRequest(url: url), from: Data("photo".utf8))
                task.resume()
                return task
            }
            try await uploadInACommand(to: url, driver)
            engine.state.withLock { $0.isListIncomplete = true }
            #expect((upload().error as? URLError)?.code == .cannotOpenFile)
            #expect(driver.ledger.transfers.count == 1)
            #expect(await session.allTasks.count == 1)
            #expect(upload().error == nil && driver.ledger.transfers.count == 2)
            // The flag means that the list may be incomplete. This process already knows all tasks, so the new upload is
            // accepted.
            engine.state.withLock { $0.isListIncomplete = true }
            #expect(upload().error == nil && driver.ledger.transfers.count == 3)
        }
    }

    @Test func `a task without an identifier from the ledger is refused and has a unique identifier`() async throws {
        try await TestDriver.run(permitting: []) { driver in
            let session = URLSession(configuration: Self.quietConfiguration)
            let engine = try #require(session.engine as? BackgroundSession)
            let busy = StoreError.busy(path: "ledger")
            let url = try #require(URL(string: "https://api.test/photo"))
            let refused = (0..<2).map { _ in
                engine.identifiers.withLock { $0.next { (_) throws(StoreError) in throw busy } }
            }
            let tasks = refused.map { identifier in
                let task = URLSessionDownloadTask(
                    session: session, source: .request(URLRequest(url: url)), identifier: identifier)
                engine.add(task)
                task.resume()
                return task
            }
            #expect(tasks.allSatisfy { $0.state == .completed && ($0.error as? URLError)?.code == .cannotCreateFile })
            #expect(driver.ledger.transfers.isEmpty)
            let later = session.downloadTask(with: url)
            later.resume()
            #expect(later.error == nil && Set(refused + [0, later.taskIdentifier]).count == 4)
        }
    }

    /// The upload ends between two launches of the app.
    @Test func `an app that begins only uploads that are not in the list begins an upload once`() async throws {
        try await TestDriver.run(permitting: ["work"]) { driver in
            let server = driver.network.server("https://api.test")
            server.route("PUT", "/photo", .status(201).after(.delay(40)))
            let url = try #require(URL(string: "https://api.test/photo"))
            let heard = ReceivedEvents()
            BGTaskScheduler.shared.register(forTaskWithIdentifier: "work", using: nil) { task in
                let session = URLSession(configuration: Self.quietConfiguration, delegate: heard, delegateQueue: nil)
                Task {
                    if await session.tasks.1.isEmpty, heard.ends.withLock({ $0.isEmpty }) {
                        session.uploadTask(with: URLRequest(url: url), from: Data("photo".utf8)).resume()
                    }
                    task.setTaskCompleted(success: true)
                }
            }
            for _ in 0..<3 {
                try BGTaskScheduler.shared.submit(BGProcessingTaskRequest(identifier: "work"))
                #expect(try await driver.finish(driver.advanceToNextLaunch()).outcome == .completed)
                try await driver.advance(by: .seconds(60))
            }
            #expect(server.requests().count == 1 && heard.ends.withLock { $0.count } == 1)
        }
    }

    @Test func `a session of an earlier test does not receive ends of the next test`() async throws {
        let (queue, heard) = (OperationQueue(), ReceivedEvents())
        queue.maxConcurrentOperationCount = 1
        let url = try #require(URL(string: "https://api.test/photo"))
        try await TestDriver.run(permitting: []) { driver in
            let session = URLSession(configuration: Self.quietConfiguration, delegate: heard, delegateQueue: queue)
            try await driver.settle()
            queue.isSuspended = true
            session.finishTasksAndInvalidate()
        }
        try await TestDriver.run(permitting: []) { driver in
            driver.network.server("https://api.test").route("PUT", "/photo", .status(201))
            try await uploadInACommand(to: url, driver)
            queue.isSuspended = false
            await withCheckedContinuation { done in queue.addBarrierBlock { done.resume() } }
            #expect(heard.ends.withLock { $0.isEmpty })
            #expect(await URLSession(configuration: Self.quietConfiguration).tasks.1.count == 1)
        }
    }

    /// The agent does not decode compressed responses, so a compressed response would reach the app undecoded.
    @Test func `a background session requests responses without compression`() async throws {
        try await TestDriver.run(permitting: []) { driver in
            let server = driver.network.server("https://api.test")
            server.route(nil, "/file", .status(200, body: "all of it"))
            let configuration = URLSessionConfiguration.background(withIdentifier: "files")
            configuration.httpAdditionalHeaders = ["Accept-Encoding": "br;q=1.0, gzip;q=0.9, deflate;q=0.8"]
            let session = URLSession(configuration: configuration, delegate: ReceivedEvents(), delegateQueue: nil)
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

    /// The app may die before the delivery is recorded. The end of the task is then delivered to the app again, and the app needs
    /// the file of the task again.
    @Test func `a file that the app moves stays in the spool until its delivery is recorded`() async throws {
        try await TestDriver.run(permitting: []) { driver in
            driver.network.server("https://api.test").route(nil, "/file", .status(200, body: .text("all of it")))
            let place = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
            defer { try? FileManager.default.removeItem(at: place) }
            let left = Mutex<[String]>([])
            let heard = ReceivedEvents { location in
                do { try FileManager.default.moveItem(at: location, to: place) } catch { Issue.record(error) }
                left.withLock { $0 = Self.spool() }
            }
            let session = URLSession(configuration: .background(withIdentifier: "files"), delegate: heard, delegateQueue: nil)
            try begin("file", of: session)
            try await driver.advance(by: .seconds(60))
            #expect(try String(contentsOf: place, encoding: .utf8) == "all of it")
            // The partial file may still exist at this time.
            #expect(left.withLock { !$0.isEmpty })
            // After the delivery was recorded, the spool contains no file.
            #expect(Self.spool() == [])
        }
    }

    @Test func `a file that the app does not move is removed`() async throws {
        try await TestDriver.run(permitting: []) { driver in
            driver.network.server("https://api.test").route(nil, "/file", .status(200, body: .text("all of it")))
            let heard = ReceivedEvents { #expect((try? String(contentsOf: $0, encoding: .utf8)) == "all of it") }
            let session = URLSession(configuration: .background(withIdentifier: "files"), delegate: heard, delegateQueue: nil)
            try begin("file", of: session)
            try await driver.advance(by: .seconds(60))
            let file = try #require(heard.files.withLock { $0.first })
            #expect(!FileManager.default.fileExists(atPath: file.path))
            #expect(Self.spool() == [])
        }
    }

    /// If the ledger was restored from a backup, it may name a file that was removed after its first delivery.
    @Test func `a missing file ends its task with an error`() async throws {
        try await TestDriver.run(permitting: []) { driver in
            driver.network.server("https://api.test").route(nil, "/file", .status(200, body: .text("all of it")))
            let configuration = URLSessionConfiguration.background(withIdentifier: "files")
            // If a session has no delegate, the end of a task is not delivered.
            let silent = URLSession(configuration: configuration)
            try begin("file", of: silent)
            try await driver.advance(by: .seconds(60))
            let names = Self.spool()
            #expect(names.count == 1)
            for name in names {
                try FileManager.default.removeItem(at: AppRuntime.shared.directories.spool.appendingPathComponent(name))
            }
            silent.finishTasksAndInvalidate()
            let heard = ReceivedEvents()
            let session = URLSession(configuration: configuration, delegate: heard, delegateQueue: nil)
            try await driver.advance(by: .seconds(60))
            #expect(heard.ends.withLock { $0 } == ["file"])
            #expect(heard.errors.withLock { $0 } == [.fileDoesNotExist])
            #expect(heard.files.withLock { $0 } == [])
            session.invalidateAndCancel()
        }
    }

    /// Two callers may mean two equal messages, so a request that must not be repeated is not shared. A GET is shared.
    @Test(arguments: ["POST", "PATCH", "PUT", "GET"]) func `equal awaited requests are sent for each caller`(_ method: String)
        async throws
    {
        let statuses = Statuses()
        try await TestDriver.run(permitting: ["say"]) { driver in
            let server = driver.network.server("https://api.test")
            server.route(method, "/say", .dripping("hello", seconds: 10))
            BGTaskScheduler.shared.register(forTaskWithIdentifier: "say", using: nil) { task in
                Task {
                    async let first = Self.say(method)
                    async let second = Self.say(method)
                    let both = await [first, second]
                    statuses.received.withLock { $0 = both }
                    task.setTaskCompleted(success: true)
                }
            }
            try BGTaskScheduler.shared.submit(BGAppRefreshTaskRequest(identifier: "say"))
            _ = try await driver.finish(driver.advanceToNextLaunch())
            let isRepeatable = ["PUT", "GET"].contains(method)
            #expect(server.requests().count == (isRepeatable ? 1 : 2))
        }
        #expect(statuses.received.withLock { $0 } == [200, 200])
    }

    private final class Statuses: Sendable {
        let received = Mutex<[Int?]>([])
    }

    private static func say(_ method: String) async -> Int? {
        var request = URLRequest(url: URL(string: "https://api.test/say")!)
        request.httpMethod = method
        let session = URLSession(configuration: .background(withIdentifier: "files"))
        let response =
            method == "GET"
            ? try? await session.data(for: request).1 : try? await session.upload(for: request, from: Data("ok".utf8)).1
        return (response as? HTTPURLResponse)?.statusCode
    }

    /// A task belongs to another intent than an await with an equal request.
    @Test func `an awaited POST does not join the task of a running process`() async throws {
        try await TestDriver.run(permitting: ["say"]) { driver in
            let server = driver.network.server("https://api.test")
            server.route("POST", "/say", .dripping("hello", seconds: 10))
            BGTaskScheduler.shared.register(forTaskWithIdentifier: "say", using: nil) { task in
                Task {
                    var request = URLRequest(url: URL(string: "https://api.test/say")!)
                    request.httpMethod = "POST"
                    let session = URLSession(configuration: .background(withIdentifier: "files"))
                    session.downloadTask(with: request).resume()
                    let response = try? await session.data(for: request).1
                    task.setTaskCompleted(success: response != nil)
                }
            }
            try BGTaskScheduler.shared.submit(BGAppRefreshTaskRequest(identifier: "say"))
            _ = try await driver.finish(driver.advanceToNextLaunch())
            #expect(server.requests().count == 2)
        }
    }
}
