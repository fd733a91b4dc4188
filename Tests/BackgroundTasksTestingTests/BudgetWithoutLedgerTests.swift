import BackgroundScheduling
import Foundation
import Synchronization
import Testing

@testable import BackgroundLedger
@testable import BackgroundTasksTesting

/// A launch whose time runs out while the ledger cannot be written.
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

    @Test func itIsWarnedAndKilledAllTheSame() throws {
        try machine.pass(28)
        #expect(program.warnings.withLock { $0 } == [])
        // The agent looks at its budget, and then after each of its tries to write.
        try machine.pass(30)
        #expect(program.warnings.withLock { $0 } == [1])
        #expect(machine.livingProcesses == [])
        machine.troubleLedger(nil)
        try machine.pass(60)
        let ended = try #require(try launch())
        #expect(ended.stopReason == .expired, "the row says it once it can")
        #expect(ended.outcome == .killed)
        #expect(try machine.ledger.read { try $0.launch(2)?.generation } == 2, "and it is made up for")
    }

    @Test func aWordAfterTheWarningCounts() throws {
        program.endsWhenWarned.withLock { $0 = true }
        try machine.pass(32)
        #expect(machine.livingProcesses == [])
        machine.troubleLedger(nil)
        // It wrote its result as soon as it could, before the agent did.
        try machine.ledger.write { try $0.setResult(.expired, detail: nil, ofLaunch: 1) }
        try machine.pass(60)
        #expect(try launch()?.outcome == .expired)
        #expect(try machine.ledger.read { try $0.request("once") } == nil)
    }

    @Test func aClockThatIsSetMeanwhileEndsNothing() throws {
        try machine.pass(5)
        try machine.stepClock(365 * 86_400)
        try machine.pass(20)
        #expect(program.warnings.withLock { $0 } == [])
        try machine.pass(40)
        #expect(program.warnings.withLock { $0 } == [1])
    }
}

/// Goes on whatever it is told, unless it is asked not to.
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
