import BackgroundScheduling
import Foundation

/// What earlier launches for something that waits (a transfer that ended, a button that was pressed) say about the next.
package struct DeliveryHistory: Sendable {
    /// Launches in a row that left it waiting, newest first.
    package let failures: [LaunchRecord]
    /// Before that no other begins; `nil`: it may begin now.
    package let pause: Pause?

    package enum Pause: Sendable, Equatable {
        /// So many launches for the session ended within the hour.
        case often(launches: Int, until: Date)
        case failed(launches: Int, until: Date)

        package var until: Date {
            switch self {
            case .often(_, let until), .failed(_, let until): until
            }
        }

        /// For the person.
        package var words: String {
            switch self {
            case .often(let launches, _): "launched \(launches) times within the hour; the pause grows with each launch"
            case .failed(let launches, _):
                "\(launches) launch\(launches == 1 ? "" : "es") in a row without success; the pause grows with each launch"
            }
        }
    }
}

extension LedgerTransaction {
    /// - Parameters:
    ///   - kind: `.urlSession` or `.notificationResponse`.
    ///   - oldest: since when it waits.
    package func deliveryHistory(
        _ kind: LaunchKind, _ identifier: String, since oldest: Date, settings: AgentSettings, now: Date
    ) throws -> DeliveryHistory {
        let earlier = try endedLaunches(kind, identifier, limit: 64)
        // A second of tolerance: a date read back from the ledger can lie a fraction of a microsecond after the one written,
        // and the launch that ended in this very pass would not count. Far in the future: the clock was set back since. What waits
        // since a time to come was there before every launch of the new time.
        let failures = try earlier.prefix(20).prefix { launch in
            let wasThere = launch.startedAt >= oldest || oldest > now && launch.outcome != .completed
            let isOver = launch.endedAt.map { $0 < now.addingTimeInterval(1) } ?? true
            return try wasThere && isOver && !hasTold(launch)
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
            // From the future: the clock was set back since.
            launch.startedAt <= now && launch.startedAt > now.addingTimeInterval(-SessionDelivery.memory)
        }
        let pause = SessionDelivery.pause(afterLaunches: recent.count)
        guard pause > 0, let last = recent.first else { return nil }
        return .often(launches: recent.count, until: min(last.endedAt ?? last.startedAt, now).addingTimeInterval(pause))
    }

    /// Some of what waited was told in it, and only the rest is left.
    private func hasTold(_ launch: LaunchRecord) throws -> Bool {
        try launch.kind == .urlSession && hasTold(in: launch, until: .distantFuture)
    }
}

extension Collection where Element == LaunchRecord {
    /// An agent that died before it had started the process earns the app no pause.
    package var blamed: [LaunchRecord] { filter { $0.outcome != .neverBegan } }

    /// When a launch may follow these, which failed in a row, newest first. `nil`: at once.
    package func endOfRelaunchPause(base: Double) -> Date? {
        let blamed = blamed
        return blamed.first?.endedAt?.addingTimeInterval(RelaunchBackoff.delay(afterFailures: blamed.count, base: base))
    }

    /// The session whose launch runs now, of live launches, and the latest end of its turn. A launch for another session waits until then.
    ///
    /// Code for iOS expects one process. Two processes that list their tasks at the same time would both begin a task that is missing. The turn
    /// has a limit, for example for a process that cannot be killed.
    package func servedSession(settings: AgentSettings, now: Date) -> (session: String, until: Date)? {
        let longest = settings.refreshBudget + settings.grace + settings.continuation
        let turns = filter { $0.kind == .urlSession }.map { launch in
            (session: launch.identifier, until: launch.startedAt.addingTimeInterval(longest))
        }
        return turns.filter { $0.until > now }.max { $0.until < $1.until }
    }
}
