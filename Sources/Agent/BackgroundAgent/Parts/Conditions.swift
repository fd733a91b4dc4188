import BackgroundLedger
import BackgroundScheduling
import Foundation

/// The conditions of the desktop, the dates at which the conditions changed, and whether the conditions are known or assumed.
struct Conditions {
    /// The number of seconds after which the assumed conditions are used, if no service has reported conditions.
    private static let patience: Double = 10

    /// `true` if a service reported the conditions. Assumed conditions are used for planning only after some seconds.
    private var isKnown = false
    private let startedAt: Double

    init(_ moment: ClockReading) { startedAt = moment.awake }

    mutating func update(_ conditions: DesktopConditions, _ pass: Pass) throws {
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

    /// Records that the machine woke, because the network may not be available yet.
    func handleWake(_ pass: inout Pass) throws {
        pass.log(.hostWoke)
        guard var observed = try pass.transaction.fact(.conditions) else { return }
        observed.resumedAt = pass.now
        try pass.transaction.setFact(.conditions, observed)
    }

    /// Returns the conditions for requests, and for transfers with needs. Returns `nil` if the conditions are not known yet.
    /// Assumed conditions are not used at the start, because a transfer that needs external power could begin on battery.
    func forPlanning(_ pass: inout Pass) -> DesktopConditions? {
        let left = startedAt + Self.patience - pass.moment.awake
        guard !isKnown, left > 0 else { return pass.desktop }
        pass.wake(at: pass.now.addingTimeInterval(left))
        return nil
    }

    /// Returns the reason if a running launch lost a condition that it requires. Returns `nil` otherwise. A manual launch
    /// requires no conditions.
    func lost(by launch: LaunchRecord, _ pass: Pass) -> String? {
        guard isKnown, !launch.simulated else { return nil }
        if launch.requiresNetwork, !pass.desktop.isNetworkAvailable { return "the network was lost" }
        if launch.requiresExternalPower, !pass.desktop.isOnExternalPower { return "external power was lost" }
        return nil
    }
}
