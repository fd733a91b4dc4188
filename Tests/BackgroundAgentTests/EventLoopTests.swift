import Foundation
import ProcessSupport
import Testing

@testable import BackgroundAgent

@Suite struct EventLoopTests {
    /// Before an agent exits, the agent checks whether events arrived after its last run of the loop.
    @Test func `the loop reports events that arrived after its last turn`() throws {
        let loop = try EventLoop()
        loop.setTimer(.distantFuture)
        #expect(!loop.hasNews)
        var isReceived = false
        nonisolated(unsafe) let hear = { isReceived = true }
        loop.poster { hear() }
        #expect(loop.hasNews)
        loop.run { if isReceived { loop.stop() } }
        #expect(!loop.hasNews)
        loop.setTimer(Date(timeIntervalSinceNow: -1))
        #expect(loop.hasNews)
    }

    @Test func `a descriptor that cannot be watched is an error`() throws {
        let loop = try EventLoop()
        #expect(throws: StoreError.self) { try loop.watch(-1) {} }
    }

    @Test func `a limit of open files is waited for and named`() {
        let expected = StoreError.troubled(path: "signalfd", reason: String(cString: strerror(EMFILE)))
        #expect(throws: expected) {
            errno = EMFILE
            _ = try EventLoop.made("signalfd", -1)
        }
    }
}
