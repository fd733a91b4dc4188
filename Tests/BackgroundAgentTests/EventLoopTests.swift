import Foundation
import Testing

@testable import BackgroundAgent

@Suite struct EventLoopTests {
    /// As an agent looks for it that leaves.
    @Test func whatCameSinceTheLastTurnIsNews() {
        let loop = EventLoop()
        loop.setTimer(.distantFuture)
        #expect(!loop.hasNews)
        var isHeard = false
        nonisolated(unsafe) let hear = { isHeard = true }
        loop.poster { hear() }
        #expect(loop.hasNews)
        loop.run { if isHeard { loop.stop() } }
        #expect(!loop.hasNews)
        loop.setTimer(Date(timeIntervalSinceNow: -1))
        #expect(loop.hasNews)
    }
}
