import BackgroundTasksTesting
import Foundation
import Synchronization
import Testing

/// Lets virtual time pass in short steps until `work` has ended. `work` may wait for events that only occur when virtual time
/// passes.
func whileTimePasses<Value: Sendable>(
    _ driver: TestDriver, _ work: @escaping @Sendable () async throws -> Value
) async throws -> Value {
    let isOver = Mutex(false)
    async let value = Result<Value, any Error> {
        defer { isOver.withLock { $0 = true } }
        return try await work()
    }
    while !isOver.withLock({ $0 }) {
        try await driver.advance(by: .milliseconds(250))
        await Task.yield()
    }
    return try await value.get()
}

/// Waits for the end of continued processing, which runs in this process. During the wait, virtual time does not pass. If virtual
/// time passed, the agent would stop the work, because the work makes no progress in virtual time.
func ended(_ launch: LaunchReport, _ driver: TestDriver) async throws -> LaunchReport {
    while driver.ledger.running.contains(where: { $0.id == launch.id }) {
        await Task.yield()
        try await driver.settle()
    }
    return try #require(driver.ledger.history.first { $0.id == launch.id })
}

extension Result where Failure == any Error {
    fileprivate init(catching body: () async throws -> Success) async {
        do { self = .success(try await body()) } catch { self = .failure(error) }
    }
}

/// Creates a folder for a test and removes the folder after the test.
func withFolder<Value>(
    isolation: isolated (any Actor)? = #isolation, _ body: (URL) async throws -> Value
) async throws -> Value {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("apps-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    return try await body(folder)
}
