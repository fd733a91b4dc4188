import BackgroundScheduling
import Foundation
import Testing

@testable import BackgroundLedger
@testable import BackgroundTasksTesting
@testable import Simulation

/// Tests of the checks that the simulation makes. Each test changes the ledger so that a promise is broken, and the check must
/// report this.
@Suite struct InvariantTests {
    private func machine() throws -> SimulatedHost {
        try SimulatedHost(
            start: Date(timeIntervalSince1970: 1_749_542_400), zone: .gmt, program: Deaf(), random: { 0.5 })
    }

    private func launch(_ identifier: String, token: String, generation: Int = 1, reason: String = "its time came")
        -> LaunchRecord
    {
        LaunchRecord(
            kind: .appRefresh, identifier: identifier, requestToken: token, generation: generation, reason: reason,
            simulated: false, servedOccurrence: Date(timeIntervalSince1970: 1_749_556_800),
            startedAt: Date(timeIntervalSince1970: 1_749_556_800))
    }

    @discardableResult
    private func insert(_ launch: LaunchRecord, ended outcome: LaunchOutcome? = nil, _ machine: SimulatedHost) throws -> Int64 {
        try machine.ledger.write { transaction in
            let id = try transaction.insert(launch).id!
            if let outcome {
                let end = launch.startedAt.timeIntervalSince1970 + 1
                try transaction.database.run(
                    sql: "UPDATE launch SET outcome = '\(outcome.rawValue)', endedAt = \(end) WHERE id = \(id)")
            }
            return id
        }
    }

    private func found(_ body: (SimulatedHost, inout InvariantWatch) throws -> Void) throws -> [String] {
        let machine = try machine()
        var watch = InvariantWatch()
        try watch.begin(machine)
        try body(machine, &watch)
        try watch.look(machine)
        return watch.broken
    }

    // MARK: Invariants at every moment

    @Test func `an empty ledger breaks no invariant`() throws { #expect(try found { _, _ in } == []) }

    @Test func `two live launches of one request are found`() throws {
        let broken = try found { machine, _ in
            try insert(launch("noon", token: "t"), machine)
            try insert(launch("noon", token: "t"), machine)
        }
        #expect(broken == ["two launches of one request live at once"])
    }

    @Test func `an outcome that changes after its end is found`() throws {
        let broken = try found { machine, watch in
            let id = try insert(launch("once", token: "t"), ended: .crashed, machine)
            try watch.look(machine)
            try machine.ledger.write {
                try $0.database.run(sql: "UPDATE launch SET outcome = 'completed' WHERE id = \(id)")
            }
        }
        #expect(broken == ["the outcome of launch 1 changed after its end"])
    }

    @Test func `a daily check that is served twice is found`() throws {
        let broken = try found { machine, watch in
            for token in ["a", "b"] { try insert(launch("noon", token: token), ended: .completed, machine) }
        }
        #expect(broken.count == 1 && broken[0].hasSuffix("was served twice"))
    }

    @Test func `a launch that repeats a launch with a result is found`() throws {
        let broken = try found { machine, watch in
            try insert(launch("once", token: "t"), ended: .completed, machine)
            try insert(launch("once", token: "t", generation: 2), machine)
        }
        #expect(broken == ["launch 2 of once repeats one that had a result"])
    }

    @Test func `a launch without a reason is found`() throws {
        #expect(
            try found { machine, _ in try insert(launch("once", token: "t", reason: ""), machine) } == [
                "launch 1 does not say why"
            ])
    }

    @Test func `a process that the agent does not stop is found`() throws {
        // The agent is running. The test starts a process that the agent has no record of.
        let broken = try found { machine, watch in
            try machine.ledger.write { transaction in
                let far = RequestRecord(
                    identifier: "far", kind: .appRefresh, earliestBegin: machine.clock.date + 86_400,
                    submittedAt: machine.clock.date)
                try transaction.save(far)
            }
            try machine.startAgent()
            let id = try insert(launch("once", token: "t"), ended: .completed, machine)
            _ = try machine.processes.start(id)
            try watch.look(machine)
            try machine.pass(120) {
                try watch.look(machine)
                return false
            }
        }
        #expect(broken.count == 1 && broken[0].contains("under the eyes of an agent"))
    }

    // MARK: Invariants at the end

    /// Simulates a quiet day, applies the test's change, and returns the broken invariants.
    private func inTheEnd(_ before: (Simulation) throws -> Void = { _ in }, _ after: (Simulation) throws -> Void) throws
        -> [String]
    {
        let simulation = try Simulation(seed: 1)
        simulation.app.submit(simulation.noon())
        try before(simulation)
        try simulation.calmDown()
        try after(simulation)
        return try simulation.app.memory.broken + simulation.watch.broken + simulation.invariantsInTheEnd()
    }

    private func empty(_ tables: String..., of simulation: Simulation) throws {
        try simulation.machine.ledger.write { transaction in
            for table in tables { try transaction.database.run(sql: "DELETE FROM \(table)") }
        }
    }

    @Test func `a quiet day breaks no invariant`() throws {
        #expect(try inTheEnd({ $0.app.download("a") }, { _ in }) == [])
    }

    @Test func `an accepted request that is missing is found`() throws {
        let broken = try inTheEnd { simulation in
            simulation.app.submitOnce(after: 3_600)
            try simulation.machine.ledger.write { try $0.deleteRequest("once") }
        }
        #expect(broken == ["once was accepted, and neither launched to a result nor is it waiting"])
    }

    @Test func `a due request that is not launched is found`() throws {
        #expect(try inTheEnd { $0.app.submitOnce(after: -3_600) } == ["once is due and not launched"])
    }

    @Test func `an accepted transfer that is missing is found`() throws {
        let broken = try inTheEnd({ $0.app.download("a") }, { try empty("sessionEvent", "transfer", of: $0) })
        #expect(broken.contains("transfer 1 was accepted and is gone"))
    }

    @Test func `an end that no launch handled is found`() throws {
        #expect(
            try inTheEnd({ $0.app.download("a") }, { $0.app.memory.handled = [:] }) == [
                "transfer 1 ended and no launch handled it"
            ])
    }

    @Test func `a download that matches no version of its file is found`() throws {
        let broken = try inTheEnd(
            { simulation in
                simulation.app.digests = { _ in ["of another file"] }
                simulation.app.download("a")
            }, { _ in })
        #expect(broken == ["download 1 of a is no version that the server ever had"])
    }

    @Test func `a photo that is missing on the server is found`() throws {
        let broken = try inTheEnd(
            { $0.app.upload(Data("photo".utf8), .webdav, name: "a.jpg") }, { $0.app.memory.photos[1] = Data("another".utf8) })
        #expect(broken == ["photo 1 is there 0 times"])
    }

    @Test func `a wanted photo whose end no launch received is found`() throws {
        let broken = try inTheEnd(
            { $0.app.want(Data("photo".utf8), .webdav, name: "a.jpg") }, { $0.app.memory.heard = [] })
        #expect(broken == ["wanted-0-a.jpg was wanted, and no launch heard of its end"])
    }

    @Test func `a notification that was not shown is found`() throws {
        #expect(try inTheEnd { _ = $0.app.memory.told.insert("storm") } == ["storm was never shown"])
    }

    @Test func `a file that no row knows is found`() throws {
        let broken = try inTheEnd { simulation in
            try Data().write(to: simulation.machine.directories.spool.appendingPathComponent("orphan"))
        }
        #expect(broken == ["files in the spool that no row knows: [\"orphan\"]"])
    }

    @Test func `a daily check that was not served is found`() throws {
        let broken = try inTheEnd { try empty("launch", of: $0) }
        #expect(broken.count == 2 && broken.allSatisfy { $0.hasSuffix("was served 0 times") })
    }
}

/// A program that does nothing and ignores every call.
private final class Deaf: VirtualProgram {
    func begin(_ process: VirtualProcess) {}
    func warned(_ process: VirtualProcess) {}
    func died(_ process: VirtualProcess) {}
}
