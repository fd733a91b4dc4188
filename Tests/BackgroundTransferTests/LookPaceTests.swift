import Testing

@testable import BackgroundTransfer

/// How often a session takes the ledger for itself.
@Suite struct LookPaceTests {
    private let start = ContinuousClock.now

    /// Looks as soon as it may, for so many seconds.
    private func looks(within seconds: Double) -> [Double] {
        var (pace, time, looks) = (LookPace(), 0.0, [Double]())
        while time < seconds {
            looks.append(time)
            pace.note(start + .seconds(time))
            time += pace.pause(before: start + .seconds(time))
        }
        return looks
    }

    @Test func theFewOfAShortTransferWaitForNothing() { #expect(looks(within: 0.02).allSatisfy { $0 == 0 }) }

    @Test func manyAreSpread() {
        let count = looks(within: 10).count
        #expect(count > 300 && count < 360, "\(count)")
    }

    /// After a while without any they may come at once again.
    @Test func aRestIsCredited() {
        var pace = LookPace()
        for _ in 0..<100 { pace.note(start) }
        #expect(pace.pause(before: start + .seconds(0.1)) > 1)
        #expect(pace.pause(before: start + .seconds(10)) == 0)
    }
}
