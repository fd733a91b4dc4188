import BackgroundTasksTesting
import Foundation
import Synchronization
import Testing

/// Lets virtual time pass, in short steps, until `work` has ended, which awaits something that only time can bring.
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

/// Continued processing runs in this process: its end is waited for while virtual time stands still, as its work would else be found to
/// stand still.
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

/// A folder of a test's own, which goes with it.
func withFolder<Value>(
    isolation: isolated (any Actor)? = #isolation, _ body: (URL) async throws -> Value
) async throws -> Value {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("apps-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    return try await body(folder)
}
