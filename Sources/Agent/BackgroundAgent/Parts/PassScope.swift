import BackgroundLedger
import Foundation

/// The part of the ledger that a pass has to check. If many small transfers run, most passes check only transfers.
struct PassScope {
    /// The extent of a pass: the complete ledger or only transfers.
    enum Extent {
        case everything
        /// Only transfer events arrived after the last complete pass.
        case transfers
    }

    /// The ledger's counter of other processes' commits, at the time of the last pass.
    private var seenVersion: Int?
    /// The app's settings at the time of the last complete pass.
    private(set) var settings = AgentSettings()
    /// The latest date at which the next complete pass of the agent begins.
    private var nextCheckTime = Date.distantPast
    private var mustCheck = true
    /// The wake-up date of the last call of ``nextWake(_:now:)``, if this date was in the past.
    private var lastPastWake: Date?

    /// Returns which work this pass of the agent examines, and the settings for this pass.
    ///
    /// - Parameter version: The ledger's counter of other processes' commits, in this transaction.
    mutating func begin(
        _ heard: [AgentEvent], _ transaction: LedgerTransaction, version: Int, now: Date
    ) throws -> (Extent, AgentSettings) {
        if !isNews(version), !heard.isEmpty, heard.allSatisfy(\.isOfTransport), !mustCheck, nextCheckTime > now {
            return (.transfers, settings)
        }
        (seenVersion, mustCheck) = (version, false)
        settings = try transaction.fact(.settings) ?? AgentSettings()
        return (.everything, settings)
    }

    mutating func end(_ extent: Extent, _ pass: inout Pass) {
        switch extent {
        case .everything: nextCheckTime = pass.wake ?? .distantFuture
        case .transfers: pass.wake(at: nextCheckTime)
        }
    }

    /// Requires that the next pass is a complete pass that is due immediately.
    mutating func requireFullPass() { mustCheck = true }

    /// Returns `true` if another pass is due. `hasChanged` is `true` if the last pass changed rows.
    func isDue(after extent: Extent, hasChanged: Bool) -> Bool {
        switch extent {
        case .everything: hasChanged
        case .transfers: mustCheck
        }
    }

    /// Records effects that will be performed. Effects may make other work due.
    ///
    /// - Returns: `true` if another pass is due immediately.
    mutating func record(_ effects: [AgentEffect]) -> Bool {
        if effects.contains(where: { !$0.isOfTransfersAlone }) { mustCheck = true }
        return mustCheck && !effects.isEmpty
    }

    /// Returns `true` if another process committed after the last pass. The agent's own commits also cause change notifications.
    func isNews(_ version: Int) -> Bool { version != seenVersion }

    /// Returns the date of the next wake-up. If a past date occurs twice, the wake-up is delayed, because an immediate pass would
    /// have the same result.
    mutating func nextWake(_ wake: Date?, now: Date) -> Date? {
        guard let wake, wake <= now else { return wake }
        defer { lastPastWake = wake }
        return wake == lastPastWake ? now.addingTimeInterval(1) : now
    }
}
