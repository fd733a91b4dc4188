import CLinux
import Foundation
import Testing

@testable import BackgroundAgent

@Suite(.timeLimit(.minutes(30))) struct NotificationRateTests {
    @Test func `the rate is too high after ten change notifications in a row`() {
        var rate = NotificationRate()
        let row = (0...10).map { rate.isTooHigh(afterRingAt: Double($0) * 0.05) }
        #expect(row == Array(repeating: false, count: 10) + [true])
        let next = rate.isTooHigh(afterRingAt: 0.7)
        #expect(!next, "after a pause the count begins again")
    }

    /// The event loop can ignore a file descriptor for a while. Change notifications that arrive while the loop ignores the
    /// descriptor also count when the agent measures the rate.
    @Test func `change notifications during a hold extend the row`() {
        var rate = NotificationRate()
        for ring in 0..<11 { _ = rate.isTooHigh(afterRingAt: Double(ring) * 0.001) }
        rate.record(ringAt: 0.95)
        let shouldContinue = rate.isTooHigh(afterRingAt: 1)
        #expect(shouldContinue)
    }

    /// The loop ignores a file descriptor for a while. If data arrives in this time, the loop runs once after the data stops.
    /// Without data, the loop does not run.
    @Test(arguments: [true, false]) func `a held descriptor causes at most one turn`(_ speaks: Bool) throws {
        let loop = try EventLoop()
        let descriptor = eventfd(0, Int32(EFD_NONBLOCK) | Int32(EFD_CLOEXEC))
        defer { close(descriptor) }
        try loop.watch(descriptor) { Issue.record("it is held") }
        nonisolated(unsafe) let ending = loop
        let post = loop.poster
        var answers = speaks ? [true, true, false] : [false]
        var turns = 0
        loop.hold(descriptor, atMost: 60) {
            let answer = answers.removeFirst()
            // Without data, the loop does not run, so the test stops the loop here.
            if !speaks { post { ending.stop() } }
            return answer
        }
        loop.run {
            turns += 1
            if speaks { loop.stop() }
        }
        #expect(answers.isEmpty && turns == 1)
    }
}
