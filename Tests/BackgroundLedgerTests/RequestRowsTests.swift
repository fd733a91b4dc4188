@testable import BackgroundLedger
import BackgroundScheduling
import Foundation
import Testing

@Suite struct RequestRowsTests {
    private let test: TestLedger
    private let ledger: Ledger
    private let now = TestLedger.now

    init() throws {
        test = try TestLedger()
        ledger = try test.open()
    }

    private func request(_ identifier: String, _ kind: LaunchKind = .appRefresh) -> RequestRecord {
        RequestRecord(identifier: identifier, kind: kind, earliestBegin: nil, submittedAt: now)
    }

    @Test func `a request that is submitted again replaces the old request and has a new token`() throws {
        let first = request("a")
        let second = request("a")
        #expect(first.token != second.token)
        try ledger.write {
            try $0.save(first)
            try $0.fail("a", until: now + 60)
            try $0.save(second)
        }
        #expect(try ledger.read { try $0.requests() } == [second], "no value of the replaced request is left")
    }

    @Test func `the count of pending requests excludes the given identifier`() throws {
        try ledger.write { transaction in
            for identifier in ["a", "b"] { try transaction.save(request(identifier, .processing)) }
            try transaction.save(request("c"))
            #expect(try transaction.pendingCount(of: .processing, besides: "a", upTo: 10) == 1)
            #expect(try transaction.pendingCount(of: .processing, besides: "x", upTo: 10) == 2)
            #expect(try transaction.pendingCount(of: .appRefresh, besides: "c", upTo: 10) == 0)
        }
    }

    @Test func `requests are deleted one by one or all at once`() throws {
        try ledger.write { transaction in
            try transaction.save(request("a"))
            try transaction.save(request("b"))
            #expect(try transaction.deleteRequest("a"))
            #expect(try !transaction.deleteRequest("a"))
            #expect(try transaction.deleteAllRequests() == 1)
            #expect(try transaction.requests().isEmpty)
        }
    }

    @Test func `a request is read from the disk with every field unchanged`() throws {
        let berlin = try #require(TimeZone(identifier: "Europe/Berlin"))
        let noon = RequestRecord(
            identifier: "StormyNoon", kind: .appRefresh, recurrence: .daily(try #require(WallClockTime(hour: 12, minute: 0))),
            spread: 17.25, missed: .skip, requiresNetwork: true, requiresExternalPower: true, wakesSystem: true,
            submittedAt: now + 0.123_456)
        let full = try ledger.write { try $0.submit(noon, now: now, zone: berlin) }
        #expect(full.earliestBegin == full.occurrence?.addingTimeInterval(17.25))
        #expect(try test.open().read { try $0.request("StormyNoon") } == full)
    }

    // MARK: Waking

    @Test func `a request that waits for a retry does not wake the system`() throws {
        try ledger.write { transaction in
            for (identifier, wakes, seconds) in [("waking", true, 100.0), ("sleeping", false, 50)] {
                try transaction.save(
                    RequestRecord(
                        identifier: identifier, kind: .appRefresh, earliestBegin: now + seconds, wakesSystem: wakes,
                        submittedAt: now))
            }
            #expect(try transaction.nextWake(after: now) == now + 100)
            #expect(try transaction.nextWake(after: now + 100) == nil)
            #expect(try !transaction.hasDueWake(now: now + 99))
            #expect(try transaction.hasDueWake(now: now + 100))
            try transaction.fail("waking", until: now + 200)
            #expect(try transaction.nextWake(after: now + 100) == nil)
            #expect(try !transaction.hasDueWake(now: now + 150))
        }
    }

    // MARK: Launches

    private func launch(_ identifier: String, occurrence: Date? = nil) throws -> Int64 {
        try ledger.write { transaction in
            let record = LaunchRecord(
                kind: .appRefresh, identifier: identifier, requestToken: "t", generation: 1, reason: "due", simulated: false,
                servedOccurrence: occurrence, startedAt: now)
            return try #require(try transaction.insert(record).id)
        }
    }

    @Test func `the first result of a launch is kept`() throws {
        let id = try launch("a")
        try ledger.write {
            try $0.setResult(.completed, detail: nil, ofLaunch: id)
            try $0.setResult(.failed, detail: "late", ofLaunch: id)
        }
        let record = try #require(try ledger.read { try $0.launch(id) })
        #expect(record.result == .completed)
        #expect(record.detail == nil)
    }

    @Test func `the last served occurrence belongs to a launch that has ended`() throws {
        let first = try launch("a", occurrence: now)
        _ = try launch("a", occurrence: now + 86_400)
        #expect(try ledger.read { try $0.lastServedOccurrence("a", now: now) } == nil, "nothing has ended")
        try ledger.write { transaction in
            try transaction.setResult(.completed, detail: nil, ofLaunch: first)
            try transaction.end(first, now: now)
        }
        #expect(try ledger.read { try $0.lastServedOccurrence("a", now: now) } == now)
        #expect(try ledger.read { try $0.lastServedOccurrence("b", now: now) } == nil)
        #expect(try ledger.read { try $0.liveLaunches() }.count == 1)
    }

    @Test func `the history keeps the last 1000 ended launches and every running launch`() throws {
        for number in 1...1_005 {
            let id = try launch("a\(number)")
            guard number != 2 else { continue }
            try ledger.write { try $0.end(id, now: now) }
        }
        let history = try ledger.read { try $0.history(limit: 5_000) }
        #expect(history.count == 1_001, "the last thousand launches and the running launch are kept")
        #expect(history.first?.identifier == "a2")
        #expect(history.last?.identifier == "a1005")
    }

    // MARK: Questions

    @Test func `a question is open until it is answered, and the answer is removed after a day`() throws {
        let id = try ledger.write { try $0.addControl(.simulateLaunch, "a", now: now) }
        #expect(try ledger.read { try $0.openQuestions() }.map(\.argument) == ["a"])
        #expect(try ledger.read { try $0.answer(to: id) } == nil)
        try ledger.write { try $0.answer(id, "launched a") }
        #expect(try ledger.read { try $0.openQuestions() }.isEmpty)
        #expect(try ledger.read { try $0.answer(to: id) } == "launched a")
        _ = try ledger.write { try $0.addControl(.quit, now: now + 86_401) }
        #expect(try ledger.read { try $0.answer(to: id) } == nil, "an answer is removed after a day")
    }

    @Test func `a new fact replaces the fact of the same kind`() throws {
        var settings = AgentSettings()
        settings.grace = 2
        try ledger.write {
            try $0.setFact(.settings, settings)
            try $0.setFact(.presenterTrouble, "none there")
            try $0.setFact(.presenterTrouble, nil)
        }
        #expect(try ledger.read { try $0.fact(.settings) } == settings)
        #expect(try ledger.read { try $0.fact(.presenterTrouble) } == nil)
    }
}

extension LedgerTransaction {
    /// Records that a launch of the request failed and that the next launch waits until `date`.
    fileprivate func fail(_ identifier: String, until date: Date) throws {
        try database.run(
            sql: "UPDATE request SET failures = 1, backoffUntil = ? WHERE identifier = ?",
            arguments: [date.timeIntervalSince1970, identifier])
    }

    fileprivate func end(_ id: Int64, now: Date) throws {
        try handle(.processEnded(.exited(0), now: now), launch: id)
    }
}
