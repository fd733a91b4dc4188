import BackgroundLedger
import BackgroundRuntime
import BackgroundScheduling
import BackgroundTasks
import Foundation

/// Timings for the benchmark, which are printed as JSON. The values are medians in seconds.
enum Measurement {
    /// Stores `count` waiting requests of all classes, and one request that is due.
    static func fill(_ count: Int) throws {
        let ledger = try AppRuntime.shared.ledger()
        let now = Date()
        for start in stride(from: 0, to: count, by: 10_000) {
            try ledger.write { transaction in
                for number in start..<min(start + 10_000, count) {
                    let request = RequestRecord(
                        identifier: "work.\(number)", kind: number % 5 == 0 ? .appRefresh : .processing,
                        earliestBegin: now.addingTimeInterval(3_600 + Double(number)), requiresNetwork: number % 2 == 0,
                        requiresExternalPower: number % 3 == 0, runsInLowPowerMode: number % 7 == 0, submittedAt: now)
                    try transaction.save(request)
                }
            }
        }
        try ledger.write {
            try $0.save(RequestRecord(identifier: "cycle.0", kind: .processing, earliestBegin: now, submittedAt: now))
        }
    }

    /// Stores `count` queued transfers of all classes and priorities. One host has half of the transfers. The other transfers are
    /// distributed over other hosts.
    static func fillTransfers(_ count: Int) throws {
        let ledger = try AppRuntime.shared.ledger()
        let now = Date()
        for start in stride(from: 0, to: count, by: 10_000) {
            try ledger.write { transaction in
                for number in start..<min(start + 10_000, count) {
                    let host = number % 2 == 0 ? "busy" : "host\(number % 1_000)"
                    var record = TransferRecord(
                        session: "measured", key: "\(number)", kind: .download, method: "GET", url: "http://\(host)/\(number)",
                        headers: [], now: now)
                    record.taskIdentifier = number + 1
                    record.needs = TransferNeeds(rawValue: number % 16)
                    record.priority = [0.25, 0.5, 0.75][number % 3]
                    _ = record.handle(.adopted(suspended: false))
                    _ = try transaction.insert(record)
                }
            }
        }
    }

    /// Measures two queries that each pass of the agent makes: the next transfers, and the time of the next check. One host is
    /// busy during the measurement.
    static func pick(rounds: Int = 200) throws -> Double {
        let met = TransferNeeds([.unmetered, .externalPower])
        let room = TransferRoom(running: Array(repeating: "http://busy", count: 6))
        return try AppRuntime.shared.ledger().write { transaction in
            try median(rounds) {
                let now = Date()
                _ = try transaction.queueDueTransfers(now: now, limit: TransferRoom.limit)
                _ = try transaction.transfersToGiveUp(tried: [], now: now)
                _ = try transaction.nextTransfers(met: met, room: room)
            }
        }
    }

    /// Measures two queries that each pass of the agent makes: the due request, and the time of the next check.
    static func decision(rounds: Int = 200) throws -> Double {
        let fine = DesktopConditions(isNetworkAvailable: true, isNetworkMetered: false, isOnExternalPower: true)
        let world = PlanningWorld(conditions: fine)
        return try AppRuntime.shared.ledger().read { transaction in
            try median(rounds) {
                let now = Date()
                let open = world.openClasses(now: now)
                _ = try transaction.firstDue(in: open, now: now)
                _ = try transaction.nextDueTime(in: open, after: now)
            }
        }
    }

    /// Measures a submit, and for comparison the commit of an equal row without a submit.
    static func submit(rounds: Int = 200) throws -> (submit: Double, commit: Double) {
        let ledger = try AppRuntime.shared.ledger()
        var (submits, commits): ([Double], [Double]) = ([], [])
        for round in 0..<rounds {
            let request = BGProcessingTaskRequest(identifier: "work.submitted")
            request.earliestBeginDate = Date().addingTimeInterval(3_600 + Double(round))
            submits.append(try seconds { try BGTaskScheduler.shared.submit(request) })
            let record = RequestRecord(
                identifier: "work.committed", kind: .processing, earliestBegin: request.earliestBeginDate, submittedAt: Date())
            commits.append(try seconds { try ledger.write { try $0.save(record) } })
        }
        return (submits.sorted()[rounds / 2], commits.sorted()[rounds / 2])
    }

    private static func median(_ rounds: Int, _ body: () throws -> Void) throws -> Double {
        try (0..<rounds).map { _ in try seconds(body) }.sorted()[rounds / 2]
    }

    static func seconds(_ body: () throws -> Void) rethrows -> Double {
        let clock = ContinuousClock()
        let span = try clock.measure(body)
        return Double(span.components.seconds) + Double(span.components.attoseconds) / 1e18
    }
}
