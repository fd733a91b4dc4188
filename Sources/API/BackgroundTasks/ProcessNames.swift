import BackgroundRuntime
import Foundation
import Synchronization

// Names that Foundation on Linux lacks, and that the background code of an iOS app has.

extension ProcessInfo {
    /// The person chose the desktop's power saver, as the agent sees it now; in a launched process it always does.
    ///
    /// Differs from Apple: `false` also where no agent runs, or no service of the desktop's says so; and nobody posts
    /// `NSProcessInfoPowerStateDidChange`. Cost: one read of the ledger.
    public var isLowPowerModeEnabled: Bool { AppRuntime.shared.observedConditions?.isLowPowerMode ?? false }

    /// Work that the process does not leave before: called with `false` on a background queue, and, where a launch's time runs out before that call has
    /// returned, once more with `true` on another: it has to stop. In a launch whose time is up already only that.
    ///
    /// Differs from Apple: it gives a launch no more time than it has, and a process that a person started as much as it takes.
    ///
    /// - Parameters:
    ///   - reason: kept nowhere.
    ///   - block: does the work, or ends it.
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

/// What a process is kept for.
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

/// Runs `body`. There is no Objective-C here whose objects would wait to be released.
///
/// - Parameter body: what an iOS app has in a pool of its own.
/// - Returns: what `body` does.
/// - Throws: what `body` throws.
public func autoreleasepool<Failure: Error, Result: ~Copyable>(
    invoking body: () throws(Failure) -> Result
) throws(Failure) -> Result { try body() }
