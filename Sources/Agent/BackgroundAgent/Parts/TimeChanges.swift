import BackgroundLedger
import BackgroundScheduling
import Foundation

/// Launches an app that handles time changes, after a change of the day, the clock or the time zone. This type has no state.
enum TimeChanges {
    static func plan(_ pass: inout Pass) throws {
        guard let reported = try pass.transaction.fact(.significantTime) else { return }
        let current = SignificantTime(at: pass.now, in: pass.zone)
        pass.wake(at: SignificantTime.nextChange(after: pass.now, in: pass.zone))
        guard let change = current.change(since: reported) else { return }
        let identifier = LaunchKind.significantTimeChange.rawValue
        let isLive = try pass.transaction.liveLaunches().contains { $0.kind == .significantTimeChange }
        // Only one such launch runs at a time. Time changes during the launch are reported after the launch.
        guard !isLive else { return }
        let now = pass.now
        // If a failure has a date in the future, the clock was set back after the failure. The failure is ignored, because its
        // pause has ended.
        let failures = try pass.transaction.endedLaunches(.significantTimeChange, identifier, limit: 20)
            .prefix { $0.outcome?.isResult == false && $0.endedAt ?? now <= now }
        guard let generation = pass.generation(after: failures) else { return }
        try pass.transaction.setFact(.significantTimeBeingTold, current)
        try pass.begin(
            LaunchRecord(
                kind: .significantTimeChange, identifier: identifier, generation: generation,
                reason: failures.isEmpty
                    ? change : "relaunch after \(RelaunchBackoff.launches(failures.count)) without a result",
                startedAt: pass.now,
                woke: change))
    }

    /// Records the time zone, the day and the clock at the beginning of the launch, because this launch reports them to the app.
    /// The next launch reports later changes.
    static func recordKnownTime(_ pass: Pass) throws {
        guard try pass.transaction.fact(.significantTime) != nil else { return }
        let reported = try pass.transaction.fact(.significantTimeBeingTold) ?? SignificantTime(at: pass.now, in: pass.zone)
        try pass.transaction.setFact(.significantTime, reported)
    }
}
