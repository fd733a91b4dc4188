import BackgroundScheduling
import Foundation

/// The results of earlier launches for an event that was not delivered yet (an ended transfer or a pressed button). These results
/// decide when the next launch begins.
package struct DeliveryHistory: Sendable {
    /// The consecutive launches that did not deliver the event, newest first.
    package let failures: [LaunchRecord]
    /// The pause before the next launch, or `nil` if the launch can begin now.
    package let pause: Pause?

    package enum Pause: Sendable, Equatable {
        /// The session had many launches within the last hour, so the next launch waits.
        case often(launches: Int, until: Date)
        case failed(launches: Int, until: Date)

        package var until: Date {
            switch self {
            case .often(_, let until), .failed(_, let until): until
            }
        }

        /// A description for the user.
        package var words: String {
            switch self {
            case .often(let launches, _): "the app was launched \(launches) times in an hour, so the pauses between launches grow"
            case .failed(let launches, _):
                "\(RelaunchBackoff.launches(launches)) in a row did not succeed, so the pauses between launches grow"
            }
        }
    }
}

extension LedgerTransaction {
    /// Returns the history of the launches for a waiting event.
    ///
    /// - Parameters:
    ///   - kind: `.urlSession` or `.notificationResponse`.
    ///   - oldest: the time since which the event has been waiting.
    package func deliveryHistory(
        _ kind: LaunchKind, _ identifier: String, since oldest: Date, settings: AgentSettings, now: Date
    ) throws -> DeliveryHistory {
        let earlier = try endedLaunches(kind, identifier, limit: 64)
        // The comparison has a tolerance of one second. A date that is read from the ledger can be a fraction of a microsecond
        // after the written date. Without the tolerance, a launch that ended in this pass would be left out. If `oldest` is in
        // the future, the clock was set back after the event. In this case every unsuccessful launch is treated as a launch after
        // the event.
        let failures = try earlier.prefix(20).prefix { launch in
            let wasThere = launch.startedAt >= oldest || oldest > now && launch.outcome != .completed
            let isOver = launch.endedAt.map { $0 < now.addingTimeInterval(1) } ?? true
            return try wasThere && isOver && !hasReported(launch)
        }
        if let pause = Self.pauseOfSession(kind, earlier, now), pause.until > now {
            return DeliveryHistory(failures: Array(failures), pause: pause)
        }
        let end =
            try hasAppChanged(since: failures.first, now: now) ? nil : failures.endOfRelaunchPause(base: settings.backoffBase)
        let pause = end.flatMap { $0 > now ? DeliveryHistory.Pause.failed(launches: failures.blamed.count, until: $0) : nil }
        return DeliveryHistory(failures: Array(failures), pause: pause)
    }

    private func hasAppChanged(since launch: LaunchRecord?, now: Date) throws -> Bool {
        guard let changed = try fact(.appChangedAt), let ended = launch?.endedAt else { return false }
        return changed > ended && changed <= now
    }

    private static func pauseOfSession(_ kind: LaunchKind, _ earlier: [LaunchRecord], _ now: Date) -> DeliveryHistory.Pause? {
        guard kind == .urlSession else { return nil }
        let recent = earlier.filter { launch in
            // A launch with a start time in the future is ignored, because the clock was set back after the launch.
            launch.startedAt <= now && launch.startedAt > now.addingTimeInterval(-SessionDelivery.memory)
        }
        let pause = SessionDelivery.pause(afterLaunches: recent.count)
        guard pause > 0, let last = recent.first else { return nil }
        return .often(launches: recent.count, until: min(last.endedAt ?? last.startedAt, now).addingTimeInterval(pause))
    }

    /// Returns whether the launch delivered at least one of the waiting events.
    private func hasReported(_ launch: LaunchRecord) throws -> Bool {
        try launch.kind == .urlSession && hasReported(in: launch, until: .distantFuture)
    }
}

extension Collection where Element == LaunchRecord {
    /// The failed launches that make the pause longer. A launch is ignored if the agent was killed before it started the process
    /// of the launch.
    package var blamed: [LaunchRecord] { filter { $0.outcome != .neverBegan } }

    /// Returns the earliest time of the next launch after these consecutive failed launches (newest first), or `nil` if the next
    /// launch can begin immediately.
    package func endOfRelaunchPause(base: Double) -> Date? {
        let blamed = blamed
        return blamed.first?.endedAt?.addingTimeInterval(RelaunchBackoff.delay(afterFailures: blamed.count, base: base))
    }

    /// Returns the session whose launch is running, and the latest time at which the turn of this session ends. A launch for
    /// another session waits until the turn has ended.
    ///
    /// Only one session at a time has a turn, because code for iOS expects a single process. If two processes listed the running
    /// tasks at the same time, both processes would begin a task that is not in the list. The turn has a time limit, because a
    /// process may hang and cannot always be killed.
    package func servedSession(settings: AgentSettings, now: Date) -> (session: String, until: Date)? {
        let longest = settings.refreshBudget + settings.grace + settings.continuation
        let turns = filter { $0.kind == .urlSession }.map { launch in
            (session: launch.identifier, until: launch.startedAt.addingTimeInterval(longest))
        }
        return turns.filter { $0.until > now }.max { $0.until < $1.until }
    }
}
