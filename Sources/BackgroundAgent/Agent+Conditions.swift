import BackgroundLedger
import BackgroundScheduling
import Foundation

// What the desktop is like, since when, and whether that is known or guessed.
extension Agent {
    /// Seconds after which a desktop that says nothing is taken at its first look.
    private static let conditionsPatience: Double = 10

    func note(_ conditions: DesktopConditions, _ pass: inout Pass) throws {
        knowsConditions = true
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
        // Any change of the network is a reason to try at once, also one that leaves it "available".
        if conditions.isNetworkAvailable { try retryWaitingForNetwork(&pass) }
    }

    /// The kernel's own count: it is there before anybody on a bus has told of the end of a sleep, and without a bus.
    func noticeSleep(_ pass: inout Pass) throws {
        let before = lastSlept
        lastSlept = slept()
        if lastSlept > before + 1 { try noteResume(&pass) }
    }

    /// Whether requests, and transfers with needs, may be planned by what is known of the desktop.
    func mayPlanByConditions(_ pass: inout Pass) -> Bool {
        let left = startedAt + Self.conditionsPatience - monotonic()
        guard !knowsConditions, left > 0 else { return true }
        pass.wake(at: pass.now.addingTimeInterval(left))
        return false
    }

    func noteResume(_ pass: inout Pass) throws {
        mustReplan = true
        lookingSince = pass.now
        log.note("the machine woke")
        guard var observed = try pass.transaction.fact(.conditions) else { return }
        observed.resumedAt = pass.now
        try pass.transaction.setFact(.conditions, observed)
    }
}
