import BackgroundLedger
import Foundation

/// The part of the ledger that a pass has to check. With many small transfers, most passes check only transfers.
struct PassScope {
    /// The scope of a pass.
    enum Extent {
        case everything
        /// Only transfer events arrived since the last complete pass.
        case transfers
    }

    /// The ledger's counter of the commits of other processes, at the last pass.
    private var seenVersion: Int?
    /// The app's settings, at the last complete pass.
    private(set) var settings = AgentSettings()
    /// The latest time of the next complete pass.
    private var nextCheckTime = Date.distantPast
    private var mustCheck = true
    /// The past wake-up time of the last call of ``nextWake(_:now:)``.
    private var lastPastWake: Date?

    /// Returns the scope and the settings of this pass.
    ///
    /// - Parameter version: The ledger's counter of the commits of other processes, in this transaction.
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

    /// Makes the next pass a complete pass that is due at once.
    mutating func requireFullPass() { mustCheck = true }

    /// Returns `true` if another pass is due. `hasChanged` is `true` if the last pass changed rows.
    func isDue(after extent: Extent, hasChanged: Bool) -> Bool {
        switch extent {
        case .everything: hasChanged
        case .transfers: mustCheck
        }
    }

    /// Records effects that will be performed, and that may make other work due.
    ///
    /// - Returns: `true` if another pass is due at once.
    mutating func record(_ effects: [AgentEffect]) -> Bool {
        if effects.contains(where: { !$0.isOfTransfersAlone }) { mustCheck = true }
        return mustCheck && !effects.isEmpty
    }

    /// Returns `true` if another process committed since the last pass. The agent's own commits also cause change notifications.
    func isNews(_ version: Int) -> Bool { version != seenVersion }

    /// Returns the next wake-up. If the same past time occurs twice, the wake-up is delayed, because another pass at once would
    /// have the same result.
    mutating func nextWake(_ wake: Date?, now: Date) -> Date? {
        guard let wake, wake <= now else { return wake }
        defer { lastPastWake = wake }
        return wake == lastPastWake ? now.addingTimeInterval(1) : now
    }
}
