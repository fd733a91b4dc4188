import BackgroundRuntime
import Testing

/// Tests that an agent that exited is started again. If every agent that is started exits again, no further agent is started.
@Suite struct AgentKeeperTests {
    @Test func `a running agent is not started again`() {
        var keeper = AgentKeeper()
        var starts = 0
        for _ in 0..<100 { #expect(keeper.tick(isRunning: true) { starts += 1 }) }
        #expect(starts == 0)
    }

    @Test func `an agent that always exits is started three times with growing pauses`() {
        var keeper = AgentKeeper()
        var starts: [Int] = []
        var ticks = 0
        while keeper.tick(isRunning: false, start: { starts.append(ticks) }), ticks < 1_000 { ticks += 1 }
        #expect(starts == [0, 3, 8])
        #expect(ticks == 17)
    }

    @Test func `an agent that ran in between does not count as a failed start`() {
        var keeper = AgentKeeper()
        var starts = 0
        for _ in 0..<20 {
            #expect(keeper.tick(isRunning: false) { starts += 1 })
            #expect(keeper.tick(isRunning: true) { starts += 1 })
        }
        #expect(starts == 20)
    }
}
