import Simulation
import Testing

/// Many installations, and one service that they all ask.
@Suite struct NoonHerdTests {
    private func herd(spread: Double, retryAfter: Double?, capacity: Int) -> NoonHerd.Outcome {
        var herd = NoonHerd(spread: spread, retryAfter: retryAfter)
        (herd.installations, herd.capacity) = (24_000, capacity)
        return herd.play()
    }

    /// A thousand of each zone, over two minutes.
    @Test func theSpreadTakesThePeakAway() {
        let (sharp, spread) = (herd(spread: 0, retryAfter: nil, capacity: 20), herd(spread: 120, retryAfter: nil, capacity: 20))
        #expect(sharp.peak == 1_000)
        #expect(spread.peak < 30, "\(spread)")
        #expect(sharp.givenUp == 0 && spread.givenUp == 0)
    }

    /// A service that asks all for the same pause does not see the same crowd again and again.
    @Test(arguments: [60, 600] as [Double]) func whoIsRefusedComesBackSpread(_ retryAfter: Double) {
        let outcome = herd(spread: 0, retryAfter: retryAfter, capacity: 4)
        #expect(outcome.givenUp == 0, "\(outcome)")
        // Once refused, once again, and few a third time.
        #expect(outcome.requests < 24_000 * 10, "\(outcome)")
    }
}
