import BackgroundRuntime
import Foundation

/// Prints the current state again after each change, until the process ends.
package enum LiveView {
    /// - Parameters:
    ///   - changes: A stream with an element for each change of state outside the ledger.
    ///   - show: A closure that prints the current state.
    package static func run(also changes: AsyncStream<Void>? = nil, show: () throws -> Void) async throws {
        try show()
        let (rings, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let token = try AppRuntime.shared.onCommit { continuation.yield() }
        let others = changes.map { changes in Task { for await _ in changes { continuation.yield() } } }
        defer {
            token.cancel()
            others?.cancel()
        }
        let retry = ReadRetry()
        for await _ in rings {
            // A change notification can arrive before the commit can be read, so this read waits for the commit. If the read
            // takes too long, the state before the commit is shown now, and the new state is shown later.
            do {
                try AppRuntime.shared.ledger().readAfterRing { _ in }
                retry.succeeded()
            } catch {
                retry.failed { continuation.yield() }
            }
            Output.clearScreen()
            try show()
        }
    }
}
