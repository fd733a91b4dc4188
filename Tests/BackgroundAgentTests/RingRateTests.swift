import Testing

@testable import BackgroundAgent

@Suite struct RingRateTests {
    @Test func whatOneLaunchMakesRingIsLookedAtAtOnce() {
        var rate = RingRate()
        for ring in 0..<10 { #expect(rate.pause(afterRingAt: Double(ring) * 0.05) == nil) }
    }

    /// It rings on whenever it is heard: looks are ever rarer, and a second apart at most.
    @Test func whoNeverStopsIsLookedAtOnceASecond() {
        var rate = RingRate()
        var (awake, pauses): (Double, [Double]) = (0, [])
        for _ in 0..<30 {
            let pause = rate.pause(afterRingAt: awake)
            if let pause { pauses.append(pause) }
            awake += (pause ?? 0) + 0.001
        }
        #expect(pauses.prefix(6) == [0.05, 0.1, 0.2, 0.4, 0.8, 1])
        #expect(pauses.dropFirst(6).allSatisfy { $0 == 1 })
        #expect(rate.pause(afterRingAt: awake + 0.2) == nil, "after a silence a row begins anew")
    }
}
