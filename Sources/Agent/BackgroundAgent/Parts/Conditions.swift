import BackgroundLedger
import BackgroundScheduling
import Foundation

/// The conditions of the desktop, the times since which they have their values, and whether the values are known or assumed.
struct Conditions {
    /// The number of seconds after which the present conditions are used, even if no service has reported them.
    private static let patience: Double = 10

    /// `true` if the conditions are known and not guessed. Guessed conditions are not used for planning.
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

    /// Returns the conditions for planning requests, and transfers with needs; `nil` if they are not known yet. A guess at the start is
    /// not used, because a transfer that needs power could begin on battery.
    func forPlanning(_ pass: inout Pass) -> DesktopConditions? {
        let left = startedAt + Self.patience - pass.moment.awake
        guard !isKnown, left > 0 else { return pass.desktop }
        pass.wake(at: pass.now.addingTimeInterval(left))
        return nil
    }

    /// Returns the reason if a condition that a running launch requires is lost; otherwise `nil`. A manual launch requires no conditions.
    func lost(by launch: LaunchRecord, _ pass: Pass) -> String? {
        guard isKnown, !launch.simulated else { return nil }
        if launch.requiresNetwork, !pass.desktop.isNetworkAvailable { return "the network was lost" }
        if launch.requiresExternalPower, !pass.desktop.isOnExternalPower { return "external power was lost" }
        return nil
    }
}
