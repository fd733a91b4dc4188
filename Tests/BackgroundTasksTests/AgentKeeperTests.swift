import BackgroundRuntime
import Testing

/// One that died is replaced; one that never stays is given up.
@Suite struct AgentKeeperTests {
    @Test func whatRunsIsLeftAlone() {
        var keeper = AgentKeeper()
        var starts = 0
        for _ in 0..<100 { #expect(keeper.tick(isRunning: true) { starts += 1 }) }
        #expect(starts == 0)
    }

    @Test func whatNeverStaysIsGivenUpWithGrowingPauses() {
        var keeper = AgentKeeper()
        var starts: [Int] = []
        var ticks = 0
        while keeper.tick(isRunning: false, start: { starts.append(ticks) }), ticks < 1_000 { ticks += 1 }
        #expect(starts == [0, 3, 8])
        #expect(ticks == 17)
    }

    @Test func oneThatStayedForAWhileStartsAfresh() {
        var keeper = AgentKeeper()
        var starts = 0
        for _ in 0..<20 {
            #expect(keeper.tick(isRunning: false) { starts += 1 })
            #expect(keeper.tick(isRunning: true) { starts += 1 })
        }
        #expect(starts == 20)
    }
}
