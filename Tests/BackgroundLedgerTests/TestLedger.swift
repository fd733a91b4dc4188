import ProcessSupport
@testable import BackgroundLedger
import CLinux
import Foundation

/// A temporary app with separate folders.
final class TestLedger {
    let folder: URL
    let directories: AppDirectories

    init() throws {
        folder = FileManager.default.temporaryDirectory.appendingPathComponent("ledger-" + UUID().uuidString)
        directories = AppDirectories(
            appIdentifier: "app",
            environment: ["HOME": folder.path, "XDG_STATE_HOME": folder.appendingPathComponent("state").path])
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(at: folder) }

    func open() throws -> Ledger { try Ledger(directories) }

    /// Writes the file of the ledger before a ledger is opened.
    func place(_ content: Data) throws {
        try directories.createStateFolders()
        try content.write(to: directories.ledger)
    }

    func mode(_ url: URL) -> Int {
        var information = stat()
        return stat(url.path, &information) == 0 ? Int(information.st_mode & 0o7777) : -1
    }

    static let now = Date(timeIntervalSince1970: 1_750_000_000)
}

/// The result of work in another thread. A test can wait for this result.
final class Background<Value: Sendable>: @unchecked Sendable {  // because the semaphore orders the write before the read
    private var result: Result<Value, any Error>?
    private let done = DispatchSemaphore(value: 0)

    init(_ body: @escaping @Sendable () throws -> Value) {
        let thread = Thread { [self] in
            result = Result { try body() }
            done.signal()
        }
        thread.start()
    }

    struct Late: Error {}

    /// Waits at most 30 s for the result.
    func value() throws -> Value {
        guard done.wait(timeout: .now() + 30) == .success, let result else { throw Late() }
        done.signal()
        return try result.get()
    }
}
