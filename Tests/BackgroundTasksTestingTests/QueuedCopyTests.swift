import ProcessSupport
@testable import BackgroundLedger
import BackgroundRuntime
import BackgroundTasksTesting
import BackgroundTransfer
import Foundation
import Synchronization
import Testing

/// Tests that an agent does not remove the copy of a file before a row of the ledger names the copy.
@Suite(.timeLimit(.minutes(30))) struct QueuedCopyTests {
    /// Creates a task of a background session that uploads a small file. The task is not resumed.
    private func upload(in folder: URL, of session: URLSession? = nil) throws -> URLSessionUploadTask {
        let file = folder.appendingPathComponent("photo")
        try Data("photo".utf8).write(to: file)
        let request = URLRequest(url: try #require(URL(string: "https://api.test/photo")))
        let session = session ?? URLSession(configuration: .background(withIdentifier: "photos"))
        return session.uploadTask(with: request, fromFile: file)
    }

    private final class EndDelegate: NSObject, URLSessionTaskDelegate, Sendable {
        let ended = AsyncStream.makeStream(of: Int.self)

        func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
            ended.continuation.yield(task.taskIdentifier)
        }
    }

    private func run(_ body: @escaping @Sendable (TestDriver, AppDirectories) async throws -> Void) async throws {
        try await TestDriver.run(permitting: []) { driver in
            driver.network.server("https://api.test").route(nil, "/photo", .status(200))
            try await body(driver, AppRuntime.shared.directories)
        }
    }

    /// Returns whether the lock is free. If another test starts a child at the same time, the child also holds the lock
    /// between fork and exec.
    private func isFree(_ directories: AppDirectories) -> Bool {
        (0..<10_000).contains { _ in
            sched_yield()
            return !FileLock.isHeld(directories.spoolLock)
        }
    }

    private func copies(_ directories: AppDirectories) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: directories.spool.path)
    }

    @Test func `an agent that starts keeps a copy that no row names yet`() async throws {
        try await run { driver, directories in
            let task = try upload(in: directories.state)
            let copy = try task.takeSnapshot().file
            // According to the clock, the copy is now so old that the agent would remove a copy without an owner.
            try await driver.stepClock(by: .seconds(400 * 86_400))
            await driver.killAgent()
            try await driver.startAgent()
            #expect(FileManager.default.fileExists(atPath: copy.path))
            task.resume()
            #expect(isFree(directories))
            try await driver.advance(by: .seconds(60))
            let requests = driver.network.server("https://api.test").requests()
            #expect(requests.map(\.bodyByteCount) == [5], "\(String(describing: task.error))")
        }
    }

    @Test func `a discarded copy is removed and releases the spool`() async throws {
        try await run { _, directories in
            let task = try upload(in: directories.state)
            try task.takeSnapshot()
            #expect(FileLock.isHeld(directories.spoolLock))
            task.discardSnapshot()
            #expect(isFree(directories))
            #expect(try copies(directories) == [])
        }
    }

    /// The callback may read the transfers and may be slow, because no process waits for the ledger during the callback.
    @Test func `an observer of transfers can read the transfers in its callback`() async throws {
        try await run { driver, directories in
            let task = try upload(in: directories.state)
            try task.takeSnapshot()
            task.resume()
            let seen = Mutex<[Int]>([])
            let ids = try BackgroundTransfers.all().map(\.id)
            let following = Task {
                try await BackgroundTransfers.follow(ids) { tally in
                    let all = (try? BackgroundTransfers.all().count) ?? -1
                    seen.withLock { $0.append(all) }
                }
            }
            try await driver.advance(by: .seconds(60))
            #expect(try await following.value.map(\.state) == [.completed])
            #expect(seen.withLock { $0.allSatisfy { $0 == 1 } && !$0.isEmpty })
        }
    }

    @Test func `a second task with the key of an ended upload ends in the same way`() async throws {
        try await run { driver, directories in
            let ends = EndDelegate()
            let session = URLSession(configuration: .background(withIdentifier: "photos"), delegate: ends, delegateQueue: nil)
            let first = try upload(in: directories.state, of: session)
            first.submissionKey = "the same"
            try first.takeSnapshot()
            first.resume()
            try await driver.advance(by: .seconds(60))
            var told = ends.ended.stream.makeAsyncIterator()
            #expect(await told.next() == first.taskIdentifier)
            #expect(first.state == .completed)
            // The end of the upload is recorded as delivered. The ledger then keeps only a part of the response.
            try await driver.advance(by: .seconds(60))
            let second = try upload(in: directories.state, of: session)
            second.submissionKey = "the same"
            second.resume()
            #expect(await told.next() == second.taskIdentifier)
            #expect(second.state == .completed)
            #expect(second.error == nil)
            #expect((second.response as? HTTPURLResponse)?.statusCode == 200)
        }
    }

    @Test func `a second task with the key of a suspended upload continues the upload`() async throws {
        try await run { driver, directories in
            let (first, second) = (try upload(in: directories.state), try upload(in: directories.state))
            for task in [first, second] { task.submissionKey = "the same" }
            first.resume()
            first.suspend()
            try await driver.advance(by: .seconds(60))
            #expect(driver.network.server("https://api.test").requests().isEmpty)
            second.resume()
            try await driver.advance(by: .seconds(60))
            #expect(driver.network.server("https://api.test").requests().count == 1)
        }
    }

    @Test func `the copy of a task that joins another task is removed`() async throws {
        try await run { driver, directories in
            let tasks = try (0..<2).map { _ in try upload(in: directories.state) }
            for task in tasks { task.submissionKey = "the same" }
            for task in tasks { try task.takeSnapshot() }
            #expect(try copies(directories).count == 2)
            for task in tasks { task.resume() }
            #expect(try copies(directories).count == 1)
            #expect(isFree(directories))
        }
    }
}
