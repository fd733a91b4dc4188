import Simulation
import Testing

/// Runs a few of the simulations of `make simulate`. Most broken invariants are found by these tests first.
@Suite struct SimulationTests {
    @Test(arguments: 1...6) func `every invariant holds during a simulation`(seed: Int) throws {
        let tally = try Simulation(seed: UInt64(seed)).run()
        #expect(tally.launches > 2)
        #expect(tally.transfers > 2)
        #expect(tally.agents > 1)
    }

    /// If all reasons that `why` lists are removed, the request runs. If one of the reasons remains, the request does not run.
    @Test(arguments: 1...4) func `the reasons that why names keep a request from running`(seed: Int) throws {
        let tally = try WhyProof.play(seed: UInt64(seed))
        #expect(tally.questions > 0 && tally.days > 0.4)
    }

    /// If a simulation fails, it prints its seed, so that it can be repeated.
    @Test func `a seed produces the same simulation twice`() throws {
        let stories = try (0..<2).map { _ in
            let simulation = try Simulation(seed: 11)
            _ = try simulation.run()
            return simulation.story
        }
        #expect(stories[0] == stories[1])
        #expect(stories[0].count > 30)
    }
}
