import BackgroundScheduling
import Foundation
import Synchronization
import Testing

@testable import BackgroundLedger
@testable import BackgroundTasksTesting

/// Tests of a launch whose time runs out while the ledger cannot be written.
@Suite struct BudgetWithoutLedgerTests {
    private let program = Stubborn()
    private let machine: SimulatedHost

    init() throws {
        machine = try SimulatedHost(
            start: Date(timeIntervalSince1970: 1_749_542_400), zone: .gmt, program: program, random: { 0.5 })
        try machine.startAgent()
        let refresh = RequestRecord(identifier: "once", kind: .appRefresh, earliestBegin: nil, submittedAt: machine.clock.date)
        try machine.ledger.write { try $0.save(refresh) }
        try machine.pass(1)
        try #require(machine.livingProcesses == [1])
        machine.troubleLedger(.diskFull(path: "ledger"))
    }

    private func launch() throws -> LaunchRecord? { try machine.ledger.read { try $0.launch(1) } }

    @Test func `a launch is warned and killed while the ledger cannot be written`() throws {
        try machine.pass(28)
        #expect(program.warnings.withLock { $0 } == [])
        // The agent first checks the time limit, and then checks it again after each attempt to write.
        try machine.pass(30)
        #expect(program.warnings.withLock { $0 } == [1])
        #expect(machine.livingProcesses == [])
        machine.troubleLedger(nil)
        try machine.pass(60)
        let ended = try #require(try launch())
        #expect(ended.stopReason == .expired, "the reason is stored as soon as the ledger can be written")
        #expect(ended.outcome == .killed)
        #expect(try machine.ledger.read { try $0.launch(2)?.generation } == 2, "the launch is repeated")
    }

    @Test func `a result that is written after the warning counts`() throws {
        program.endsWhenWarned.withLock { $0 = true }
        try machine.pass(32)
        #expect(machine.livingProcesses == [])
        machine.troubleLedger(nil)
        // The process writes its result before the agent can write.
        try machine.ledger.write { try $0.setResult(.expired, detail: nil, ofLaunch: 1) }
        try machine.pass(60)
        #expect(try launch()?.outcome == .expired)
        #expect(try machine.ledger.read { try $0.request("once") } == nil)
    }

    @Test func `a change of the clock does not end a launch early`() throws {
        try machine.pass(5)
        try machine.stepClock(365 * 86_400)
        try machine.pass(20)
        #expect(program.warnings.withLock { $0 } == [])
        try machine.pass(40)
        #expect(program.warnings.withLock { $0 } == [1])
    }
}

/// A program that ignores warnings unless `endsWhenWarned` is set.
private final class Stubborn: VirtualProgram {
    let warnings = Mutex<[Int64]>([])
    let endsWhenWarned = Mutex(false)

    func begin(_ process: VirtualProcess) {}

    func warned(_ process: VirtualProcess) {
        warnings.withLock { $0.append(process.launch) }
        if endsWhenWarned.withLock({ $0 }) { process.exit() }
    }

    func died(_ process: VirtualProcess) {}
}
