import BackgroundLedger
import BackgroundScheduling
import Foundation

// Apps that asked for it are told when the day, the clocks or the time zone changed.
extension Agent {
    func planTimeChanges(_ pass: inout Pass) throws {
        guard let told = try pass.transaction.fact(.significantTime) else { return }
        let current = SignificantTime(at: pass.now, in: zone)
        pass.wake(at: SignificantTime.nextChange(after: pass.now, in: zone))
        guard let change = current.change(since: told) else { return }
        let identifier = LaunchKind.significantTimeChange.rawValue
        let isLive = try pass.transaction.liveLaunches().contains { $0.kind == .significantTimeChange }
        // One at a time; what changes meanwhile is told after it.
        guard !isLive else { return }
        let failures = try pass.transaction.endedLaunches(.significantTimeChange, identifier, limit: 20)
            .prefix { $0.outcome?.isResult == false }
        let delay = RelaunchBackoff.delay(afterFailures: failures.count, base: pass.settings.backoffBase)
        if let last = failures.first?.endedAt, last <= pass.now, last.addingTimeInterval(delay) > pass.now {
            return pass.wake(at: last.addingTimeInterval(delay))
        }
        var launch = LaunchRecord(
            kind: .significantTimeChange, identifier: identifier, requestToken: nil, generation: failures.count + 1,
            reason: failures.isEmpty ? change : "relaunch after \(failures.count) without a result", simulated: false,
            servedOccurrence: nil, startedAt: pass.now)
        launch.woke = change
        try pass.transaction.setFact(.significantTimeBeingTold, current)
        pass.effects.append(.startLaunch(try pass.transaction.insert(launch).id!))
    }

    /// The app had its say: it knows the time as it was when its launch began. What changed meanwhile is told next.
    func settleTimeChange(_ pass: Pass) throws {
        guard try pass.transaction.fact(.significantTime) != nil else { return }
        let told = try pass.transaction.fact(.significantTimeBeingTold) ?? SignificantTime(at: pass.now, in: zone)
        try pass.transaction.setFact(.significantTime, told)
    }
}
