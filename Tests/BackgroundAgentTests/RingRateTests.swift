import CLinux
import Foundation
import Testing

@testable import BackgroundAgent

@Suite(.timeLimit(.minutes(30))) struct RingRateTests {
    @Test func whatOneLaunchMakesRingIsLookedAtAtOnce() {
        var rate = RingRate()
        let row = (0...10).map { rate.isTooHigh(afterRingAt: Double($0) * 0.05) }
        #expect(row == Array(repeating: false, count: 10) + [true])
        let next = rate.isTooHigh(afterRingAt: 0.7)
        #expect(!next, "after a silence a row begins anew")
    }

    /// Rings that came while it was held belong to the row.
    @Test func aRowGoesOnWhereItRangMeanwhile() {
        var rate = RingRate()
        for ring in 0..<11 { _ = rate.isTooHigh(afterRingAt: Double(ring) * 0.001) }
        rate.note(ringAt: 0.95)
        let goesOn = rate.isTooHigh(afterRingAt: 1)
        #expect(goesOn)
    }

    /// What is held is handled by one turn when it is silent, and without one where it said nothing.
    @Test(arguments: [true, false]) func whatIsHeldIsHandledOnce(_ speaks: Bool) throws {
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
            // Where no turn is due something else has to end the loop.
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
