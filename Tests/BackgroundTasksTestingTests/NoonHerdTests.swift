import Simulation
import Testing

/// Tests of many installations that send requests to one service.
@Suite struct NoonHerdTests {
    private func herd(spread: Double, retryAfter: Double?, capacity: Int) -> NoonHerd.Outcome {
        var herd = NoonHerd(spread: spread, retryAfter: retryAfter)
        (herd.installations, herd.capacity) = (24_000, capacity)
        return herd.play()
    }

    /// In each time zone, 1,000 installations send their requests either at the same time or spread over two minutes.
    @Test func `a spread lowers the peak of the requests`() {
        let (sharp, spread) = (herd(spread: 0, retryAfter: nil, capacity: 20), herd(spread: 120, retryAfter: nil, capacity: 20))
        #expect(sharp.peak == 1_000)
        #expect(spread.peak < 30, "\(spread)")
        #expect(sharp.givenUp == 0 && spread.givenUp == 0)
    }

    /// A service requests the same pause from all installations. The service must not receive all retries at the same time.
    @Test(arguments: [60, 600] as [Double]) func `all refused installations succeed after their retries`(_ retryAfter: Double) {
        let outcome = herd(spread: 0, retryAfter: retryAfter, capacity: 4)
        #expect(outcome.givenUp == 0, "\(outcome)")
        // The limit is ten requests per installation.
        #expect(outcome.requests < 24_000 * 10, "\(outcome)")
    }
}
