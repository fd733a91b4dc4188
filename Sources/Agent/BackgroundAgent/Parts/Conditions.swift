import BackgroundLedger
import BackgroundScheduling
import Foundation

/// What the desktop is like, since when, and whether that is known or guessed.
struct Conditions {
    /// Seconds after which a desktop that says nothing is taken at its first look.
    private static let patience: Double = 10

    /// Known, not guessed. Until then nothing is planned by them.
    private var isKnown = false
    private let startedAt: Double

    init(_ moment: Moment) { startedAt = moment.awake }

    mutating func note(_ conditions: DesktopConditions, _ pass: Pass) throws {
        isKnown = true
        let before = try pass.transaction.fact(.conditions)
        let sameNetwork = before?.conditions.isNetworkAvailable == conditions.isNetworkAvailable
        let samePower = before?.conditions.isOnExternalPower == conditions.isOnExternalPower
        let sameSaving = before?.conditions.isSavingPower == conditions.isSavingPower
        var observed = ObservedConditions(
            conditions: conditions, networkSince: sameNetwork ? before?.networkSince ?? pass.now : pass.now,
            powerSince: samePower ? before?.powerSince ?? pass.now : pass.now)
        observed.savingSince = sameSaving ? before?.savingSince ?? pass.now : pass.now
        observed.resumedAt = before?.resumedAt
        observed.firstLookAt = before == nil ? pass.now : before?.firstLookAt
        try pass.transaction.setFact(.conditions, observed)
    }

    /// The host woke: a network may not be back yet.
    func noteWake(_ pass: inout Pass) throws {
        pass.log(.hostWoke)
        guard var observed = try pass.transaction.fact(.conditions) else { return }
        observed.resumedAt = pass.now
        try pass.transaction.setFact(.conditions, observed)
    }

    /// By which requests, and transfers with needs, may be planned; `nil`: not yet. What is guessed at the start is no promise: a
    /// transfer that needs power would begin on a battery.
    func forPlanning(_ pass: inout Pass) -> DesktopConditions? {
        let left = startedAt + Self.patience - pass.moment.awake
        guard !isKnown, left > 0 else { return pass.desktop }
        pass.wake(at: pass.now.addingTimeInterval(left))
        return nil
    }

    /// Which condition that a running launch was promised holds no longer. What was launched by hand was promised none.
    func lost(by launch: LaunchRecord, _ pass: Pass) -> String? {
        guard isKnown, !launch.simulated else { return nil }
        if launch.requiresNetwork, !pass.desktop.isNetworkAvailable { return "the network was lost" }
        if launch.requiresExternalPower, !pass.desktop.isOnExternalPower { return "external power was lost" }
        return nil
    }
}
