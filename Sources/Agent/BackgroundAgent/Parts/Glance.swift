import BackgroundLedger
import Foundation

/// What of the ledger has to be looked at: with many small transfers most passes are about those alone.
struct Glance {
    /// How much a pass looks at.
    enum Extent {
        case everything
        /// Nothing but the wire has spoken since everything was looked at.
        case transfers
    }

    /// What the ledger said of others' commits at the last look.
    private var seenVersion: Int?
    /// What the app asked for, at the last look at everything.
    private(set) var settings = AgentSettings()
    /// When everything is to be looked at again at the latest.
    private var nextLook = Date.distantPast
    private var mustLook = true
    /// The moment that lay behind when it was asked for last.
    private var lastPastWake: Date?

    /// What this pass looks at, and with which settings.
    ///
    /// - Parameter version: The ledger's number for the commits of other processes, in this transaction.
    mutating func begin(
        _ heard: [AgentEvent], _ transaction: LedgerTransaction, version: Int, now: Date
    ) throws -> (Extent, AgentSettings) {
        if !isNews(version), !heard.isEmpty, heard.allSatisfy(\.isOfTransport), !mustLook, nextLook > now {
            return (.transfers, settings)
        }
        (seenVersion, mustLook) = (version, false)
        settings = try transaction.fact(.settings) ?? AgentSettings()
        return (.everything, settings)
    }

    mutating func end(_ extent: Extent, _ pass: inout Pass) {
        switch extent {
        case .everything: nextLook = pass.wake ?? .distantFuture
        case .transfers: pass.wake(at: nextLook)
        }
    }

    /// The next pass looks at everything, and is due at once.
    mutating func lookAtEverything() { mustLook = true }

    /// Whether another pass is due, after one that changed rows or not.
    func isDue(after extent: Extent, hasChanged: Bool) -> Bool {
        switch extent {
        case .everything: hasChanged
        case .transfers: mustLook
        }
    }

    /// Effects are about to be performed that may make something else due.
    ///
    /// - Returns: another pass is due at once.
    mutating func note(_ effects: [AgentEffect]) -> Bool {
        if effects.contains(where: { !$0.isOfTransfersAlone }) { mustLook = true }
        return mustLook && !effects.isEmpty
    }

    /// Somebody else committed since the last look. The bell rings for our own commits, too.
    func isNews(_ version: Int) -> Bool { version != seenVersion }

    /// A moment that lies behind and was not acted upon, a second time: looking again at once would find the same.
    mutating func settle(_ wake: Date?, now: Date) -> Date? {
        guard let wake, wake <= now else { return wake }
        defer { lastPastWake = wake }
        return wake == lastPastWake ? now.addingTimeInterval(1) : now
    }
}
