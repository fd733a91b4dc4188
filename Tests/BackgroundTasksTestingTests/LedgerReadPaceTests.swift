import Testing

import BackgroundRuntime

/// Tests of how often a session reads the ledger.
@Suite struct LedgerReadPaceTests {
    private let start = ContinuousClock.now

    /// Returns the times of all reads within `seconds`. Each read begins as soon as `LedgerReadPace` allows.
    private func looks(within seconds: Double) -> [Double] {
        var (pace, time, looks) = (LedgerReadPace(), 0.0, [Double]())
        while time < seconds {
            looks.append(time)
            pace.add(start + .seconds(time))
            time += pace.pause(before: start + .seconds(time))
        }
        return looks
    }

    @Test func `the reads of a short transfer are not delayed`() { #expect(looks(within: 0.02).allSatisfy { $0 == 0 }) }

    @Test func `many reads are spread over time`() {
        let count = looks(within: 10).count
        #expect(count > 300 && count < 360, "\(count)")
    }

    /// If some time has passed since the last reads, the next read may begin immediately.
    @Test func `reads after a pause are not delayed`() {
        var pace = LedgerReadPace()
        for _ in 0..<100 { pace.add(start) }
        #expect(pace.pause(before: start + .seconds(0.1)) > 1)
        #expect(pace.pause(before: start + .seconds(10)) == 0)
    }
}
