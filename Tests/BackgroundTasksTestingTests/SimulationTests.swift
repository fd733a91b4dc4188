import Simulation
import Testing

/// A few seeds of `make simulate`, so that a broken invariant is mostly seen here first.
@Suite struct SimulationTests {
    @Test(arguments: 1...6) func everyInvariantHolds(seed: Int) throws {
        let tally = try Simulation(seed: UInt64(seed)).run()
        #expect(tally.launches > 2)
        #expect(tally.transfers > 2)
        #expect(tally.agents > 1)
    }

    /// What `why` names is what keeps a request from running: without it that runs, with it it does not.
    @Test(arguments: 1...4) func whatWhySaysIsTheCause(seed: Int) throws {
        let tally = try WhyProof.play(seed: UInt64(seed))
        #expect(tally.questions > 0 && tally.days > 0.4)
    }

    /// The same seed is the same story: what a failure prints can be played again.
    @Test func aSeedIsPlayedTheSameTwice() throws {
        let stories = try (0..<2).map { _ in
            let simulation = try Simulation(seed: 11)
            _ = try simulation.run()
            return simulation.story
        }
        #expect(stories[0] == stories[1])
        #expect(stories[0].count > 30)
    }
}
