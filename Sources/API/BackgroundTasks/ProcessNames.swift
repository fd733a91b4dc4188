import BackgroundRuntime
import Foundation
import Synchronization

// Declares symbols that an iOS app uses for background work and that Foundation on Linux does not have.

extension ProcessInfo {
    /// A Boolean value that indicates whether the desktop's power saver is on. The agent observes the power saver. If the agent
    /// launched this process, the agent is always running.
    ///
    /// Differs from Apple: the value is also `false` if no agent is running, or if no desktop service reports the power saver.
    /// `NSProcessInfoPowerStateDidChange` is not posted. Cost: one read of the ledger.
    public var isLowPowerModeEnabled: Bool { AppRuntime.shared.observedConditions?.isLowPowerMode ?? false }

    /// Runs work that must be complete before the process ends.
    ///
    /// `block` is called with `false` on a background queue. If the launch reaches its time limit before this call has returned,
    /// `block` is called again with `true` on another queue. The second call must stop the work. If the launch has already
    /// reached the time limit, `block` is called only with `true`.
    ///
    /// Differs from Apple: a launch gets no additional time. A process that a user started waits until the work is complete.
    ///
    /// - Parameters:
    ///   - reason: not used.
    ///   - block: the code that does the work, or stops the work if the argument is `true`.
    public func performExpiringActivity(withReason reason: String, using block: @escaping @Sendable (Bool) -> Void) {
        let activity = ExpiringActivity(block)
        guard let launch = LaunchContext.current else { return OutstandingCalls.shared.run { activity.run() } }
        if launch.stopReason != nil { return activity.expire() }
        let (returned, hasReturned) = AsyncStream.makeStream(of: Void.self)
        launch.stay { for await _ in returned {} }
        launch.onWarning { _ in activity.expire() }
        DispatchQueue.global().async {
            activity.run()
            hasReturned.finish()
        }
    }
}

/// Work that keeps a process running.
private final class ExpiringActivity: Sendable {
    private let block: @Sendable (Bool) -> Void
    private let isOver = Mutex(false)

    init(_ block: @escaping @Sendable (Bool) -> Void) { self.block = block }

    func run() {
        block(false)
        isOver.withLock { $0 = true }
    }

    func expire() { if !isOver.withLock({ $0 }) { block(true) } }
}

/// Runs `body`. Swift on Linux has no Objective-C objects, so no autorelease pool is necessary.
///
/// - Parameter body: code that an iOS app runs in an autorelease pool.
/// - Returns: the value that `body` returns.
/// - Throws: the error that `body` throws.
public func autoreleasepool<Failure: Error, Result: ~Copyable>(
    invoking body: () throws(Failure) -> Result
) throws(Failure) -> Result { try body() }
