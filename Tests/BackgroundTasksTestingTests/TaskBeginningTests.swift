import BackgroundRuntime
import BackgroundTasksTesting
@testable import BackgroundTransfer
import Foundation
import ServerScripts
import Spool
import Synchronization
import Testing

/// Tests in which other threads call a background task while `resume()` copies the file of this task.
@Suite(.timeLimit(.minutes(30))) struct TaskBeginningTests {
    /// An upload task that calls closures while its body is copied, and after it was marked as completed.
    private final class Upload: URLSessionUploadTask, @unchecked Sendable {  // because its base class is
        let whileCopying = Mutex<(@Sendable (URLSessionUploadTask) -> Void)?>(nil)
        let whileEnding = Mutex<(@Sendable (URLSessionUploadTask) -> Void)?>(nil)

        // The session reads this property when it ends the task.
        override var originalRequest: URLRequest? {
            if facts.withLock({ $0.isCompleted }), let call = whileEnding.withLock({ $0.take() }) { call(self) }
            return super.originalRequest
        }

        override func currentSnapshot(
            preparing: ((URL) throws -> Bool)? = nil, checking: ((Int32) throws -> Void)? = nil
        ) throws -> Snapshot {
            let call = whileCopying.withLock { call in
                defer { call = nil }
                return call
            }
            call?(self)
            return try super.currentSnapshot(preparing: preparing, checking: checking)
        }
    }

    private final class ReceivedEvents: NSObject, URLSessionTaskDelegate, Sendable {
        let ends = Mutex<[URLError.Code?]>([])
        let invalid = AsyncStream.makeStream(of: Void.self)

        func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
            ends.withLock { $0.append((error as? URLError)?.code) }
        }

        func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) { invalid.continuation.yield() }
    }

    /// A session with one upload that was not resumed.
    private struct Scene {
        let driver: TestDriver
        let server: VirtualServer
        let heard = ReceivedEvents()
        let session: URLSession
        let task: Upload

        init(_ driver: TestDriver, whileCopying: (@Sendable (URLSessionUploadTask) -> Void)? = nil) throws {
            self.driver = driver
            server = driver.network.server("https://api.test")
            server.route("PUT", "/photo", .status(201))
            let configuration = URLSessionConfiguration.background(withIdentifier: "files")
            session = URLSession(configuration: configuration, delegate: heard, delegateQueue: nil)
            let url = try #require(URL(string: "https://api.test/photo"))
            var request = URLRequest(url: url)
            request.httpMethod = "PUT"
            task = Upload(session: session, request: request, body: .data(Data("photo".utf8)))
            session.engine.add(task)
            task.whileCopying.withLock { $0 = whileCopying }
        }

        var ends: [URLError.Code?] { heard.ends.withLock { $0 } }
        var requests: Int { server.requests().count }
    }

    @Test func `a task that is cancelled while its file is copied is not queued and ends once`() async throws {
        try await TestDriver.run(permitting: []) { driver in
            let scene = try Scene(driver) { task in
                #expect(task.state == .running)
                task.cancel()
                #expect(task.state == .completed)
            }
            scene.task.resume()
            #expect((scene.task.error as? URLError)?.code == .cancelled)
            try await driver.advance(by: .seconds(60))
            await withCheckedContinuation { done in scene.session.delegateQueue.addBarrierBlock { done.resume() } }
            #expect(scene.ends == [.cancelled])
            #expect(scene.requests == 0 && driver.ledger.transfers.isEmpty)
            let spool = AppRuntime.shared.directories.spool.path
            #expect((try? FileManager.default.contentsOfDirectory(atPath: spool)) ?? [] == [])
        }
    }

    @Test func `a session that is invalidated while a file is copied cancels its task and becomes invalid`() async throws {
        try await TestDriver.run(permitting: []) { driver in
            let scene = try Scene(driver) { $0.session.invalidateAndCancel() }
            scene.task.resume()
            var invalid = scene.heard.invalid.stream.makeAsyncIterator()
            #expect(await invalid.next() != nil)
            try await driver.advance(by: .seconds(60))
            #expect(scene.ends == [.cancelled] && scene.requests == 0 && driver.ledger.transfers.isEmpty)
        }
    }

    @Test func `a session that is invalidated by another thread ends its task first`() async throws {
        try await TestDriver.run(permitting: []) { driver in
            let scene = try Scene(driver) { $0.session.invalidateAndCancel() }
            scene.task.whileEnding.withLock { call in
                call = { task in
                    // This is the read that a commit of another process causes.
                    (task.session.engine as? BackgroundSession)?.scheduleLedgerRead()
                    task.session.delegateQueue.waitUntilAllOperationsAreFinished()
                }
            }
            scene.task.resume()
            var invalid = scene.heard.invalid.stream.makeAsyncIterator()
            #expect(await invalid.next() != nil)
            #expect(scene.ends == [.cancelled])
            #expect(scene.task.whileEnding.withLock { $0 == nil })
        }
    }

    @Test func `a session that finishes while a file is copied waits for its task`() async throws {
        try await TestDriver.run(permitting: []) { driver in
            let scene = try Scene(driver) { $0.session.finishTasksAndInvalidate() }
            scene.task.resume()
            try await driver.advance(by: .seconds(60))
            var invalid = scene.heard.invalid.stream.makeAsyncIterator()
            #expect(await invalid.next() != nil)
            #expect(scene.ends == [nil] && scene.requests == 1)
        }
    }

    @Test func `a task that is suspended while its file is copied is queued suspended`() async throws {
        try await TestDriver.run(permitting: []) { driver in
            let scene = try Scene(driver) { task in
                task.suspend()
                #expect(task.state == .suspended)
            }
            scene.task.resume()
            #expect(scene.task.state == .suspended)
            try await driver.advance(by: .seconds(60))
            #expect(scene.requests == 0)
            scene.task.resume()
            try await driver.advance(by: .seconds(60))
            #expect(scene.ends == [nil] && scene.requests == 1)
        }
    }

    @Test func `a property that is changed while the file is copied is in the ledger`() async throws {
        try await TestDriver.run(permitting: []) { driver in
            let scene = try Scene(driver) { task in
                task.taskDescription = "storm"
                task.earliestBeginDate = driver.clock.date.addingTimeInterval(3_600)
            }
            scene.task.resume()
            try await driver.advance(by: .seconds(60))
            let row = try #require(scene.task.transferNumber)
            let transfer = try #require(try AppRuntime.shared.ledger().read { try $0.transfer(row) })
            #expect(transfer.taskDescription == "storm" && scene.requests == 0)
            try await driver.advance(by: .seconds(3_600))
            #expect(scene.requests == 1)
        }
    }

    @Test func `a task that several threads resume is queued once`() async throws {
        try await TestDriver.run(permitting: []) { driver in
            let (work, threads) = (WorkContext(), DispatchGroup())
            let scene = try Scene(driver) { task in
                let begun = DispatchSemaphore(value: 0)
                for _ in 0..<4 {
                    threads.enter()
                    let resume = work.block {
                        begun.signal()
                        task.resume()
                        // When `resume()` returns in a thread, the task is in the ledger.
                        #expect(task.transferNumber != nil)
                        threads.leave()
                    }
                    Thread.detachNewThread { resume() }
                }
                for _ in 0..<4 { begun.wait() }
            }
            scene.task.resume()
            await withCheckedContinuation { done in threads.notify(queue: .global()) { done.resume() } }
            try await driver.advance(by: .seconds(60))
            #expect(scene.ends == [nil] && scene.requests == 1 && driver.ledger.transfers.count == 1)
        }
    }
}
