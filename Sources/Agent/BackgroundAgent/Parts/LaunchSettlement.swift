import BackgroundLedger
import BackgroundScheduling
import Foundation

/// Ends a launch. The outcome decides what happens to the request and to the events of the launch. This type has no state.
enum LaunchSettlement {
    /// - Returns: the launch with its outcome.
    static func end(
        _ launch: LaunchRecord, _ end: ProcessEnd, _ timer: LaunchSupervision?, _ pass: inout Pass
    ) throws -> LaunchRecord {
        var (launch, timer) = (launch, timer)
        let isDelivery = launch.kind == .urlSession && launch.result == .completed
        let wasInterrupted = try isDelivery && pass.transaction.hasClaimedEvents(in: launch)
        let note = isDelivery ? try describeDeliveries(of: launch, pass) : nil
        let event = LaunchLife.Event.processEnded(end, wasInterrupted: wasInterrupted, note: note, now: pass.now)
        try pass.transaction.handle(event, &launch, &timer)
        guard let outcome = launch.outcome else { return launch }
        if outcome == .completed { try completeDeliveries(of: launch, pass) }
        try pass.transaction.applyLaunchEnd(of: launch, end, backoffBase: pass.settings.backoffBase, now: pass.now, in: pass.zone)
        if launch.kind == .significantTimeChange, outcome.isResult { try TimeChanges.recordKnownTime(pass) }
        pass.log(
            .launchEnded, (.launch, launch.id ?? 0), (.kind, launch.kind.rawValue), (.identifier, launch.identifier),
            (.outcome, outcome.rawValue))
        return launch
    }

    /// Returns a note about the results of the transfers that the launch delivered.
    private static func describeDeliveries(of launch: LaunchRecord, _ pass: Pass) throws -> String? {
        let notes = try pass.transaction.deliveredTransfers(session: launch.identifier, since: launch.startedAt)
            .compactMap(\.note)
        let counts = notes.reduce(into: [String: Int]()) { $0[$1, default: 0] += 1 }
        var listed: Set<String> = []
        let lines = notes.filter { listed.insert($0).inserted }.map { note in
            counts[note]! > 1 ? "\(counts[note]!) times: \(note)" : note
        }
        return lines.isEmpty ? nil : lines.joined(separator: "; ")
    }

    // MARK: Deliveries

    /// Marks old events as delivered after the handler returned, if no delegate in the process received events. Without this
    /// step, an app without a delegate would be launched endlessly. If a delegate received some of the events, the next launch
    /// delivers the other events.
    private static func completeDeliveries(of launch: LaunchRecord, _ pass: Pass) throws {
        // If an event's date is in the future, the clock was set back, so the event is old. A date up to one second in the future
        // does not make an event old. The reason is that a date from the ledger can be slightly later than the written date. A
        // result of this pass can have such a date, and this result was not delivered yet.
        func isOld(_ date: Date) -> Bool { date <= launch.startedAt || date > pass.now.addingTimeInterval(1) }
        switch launch.kind {
        case .urlSession:
            if try pass.transaction.hasReported(in: launch, until: launch.startedAt) { return }
            // If another process awaits an event, the event belongs to that process, even if the process is stopped. If another
            // process claimed an event, the event counts as delivered only after that process reports the delivery.
            for event in try pass.transaction.undeliveredEvents(session: launch.identifier)
            where try isOld(event.createdAt) && event.claimPID == nil && !pass.transaction.isAwaited(event.transfer) {
                try pass.transaction.eventWasDelivered(event.id!, now: pass.now)
            }
        case .notificationResponse:
            for response in try pass.transaction.undeliveredResponses()
            where response.notification == launch.identifier && isOld(response.createdAt) {
                try pass.transaction.responseWasDelivered(response.id!, now: pass.now)
            }
        case .appRefresh, .processing, .continuedProcessing, .significantTimeChange:
            break
        }
    }
}
