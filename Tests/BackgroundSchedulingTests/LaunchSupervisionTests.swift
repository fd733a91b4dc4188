import BackgroundScheduling
import Foundation
import Testing

@Suite struct LaunchSupervisionTests {
    private let start = Date(timeIntervalSince1970: 1_750_000_000)

    private func at(_ seconds: Double) -> Date { start.addingTimeInterval(seconds) }
    private func fresh() -> LaunchSupervision { LaunchSupervision(startedAt: start, budget: 30, grace: 5) }

    @Test func `a launch is warned when its time is up and killed after the grace time`() {
        var launch = fresh()
        #expect(launch.deadline == at(30))
        #expect(launch.tick(now: at(29.9), isPersonChoosing: false) == nil)
        #expect(launch.tick(now: at(30), isPersonChoosing: false) == .warn(.expired))
        #expect(launch.tick(now: at(30), isPersonChoosing: false) == nil, "once")
        #expect(launch.deadline == at(35))
        #expect(launch.tick(now: at(34.9), isPersonChoosing: false) == nil)
        #expect(launch.tick(now: at(35), isPersonChoosing: false) == .kill)
        #expect(launch.tick(now: at(99), isPersonChoosing: false) == nil, "once")
        #expect(launch.deadline == nil)
    }

    @Test func `a launch may continue beyond its budget when its handlers returned`() {
        var launch = fresh()
        launch.continues(for: 35, from: at(20))
        #expect(launch.deadline == at(55))
        launch.continues(for: 35, from: at(40))
        #expect(launch.deadline == at(55), "only the first call counts")
        launch.shift(by: 100)
        #expect(launch.tick(now: at(154), isPersonChoosing: false) == nil)
        #expect(launch.tick(now: at(155), isPersonChoosing: false) == .warn(.expired))
        #expect(launch.deadline == at(160))
    }

    @Test func `a continuation does not shorten a budget`() {
        var launch = LaunchSupervision(startedAt: start, budget: 600, grace: 5)
        launch.continues(for: 35, from: at(1))
        #expect(launch.deadline == at(600))
    }

    @Test func `a late warning is followed by the complete grace time`() {
        var launch = fresh()
        #expect(launch.tick(now: at(1_000), isPersonChoosing: false) == .warn(.expired))
        #expect(launch.tick(now: at(1_004), isPersonChoosing: false) == nil)
        #expect(launch.tick(now: at(1_005), isPersonChoosing: false) == .kill)
    }

    @Test func `a launch does not expire while the user chooses, up to a ceiling`() {
        var launch = fresh()
        #expect(launch.tick(now: at(0), isPersonChoosing: true) == nil)
        #expect(launch.deadline == at(600))
        #expect(launch.tick(now: at(599), isPersonChoosing: true) == nil)
        #expect(launch.tick(now: at(600), isPersonChoosing: true) == .warn(.expired), "the ceiling")
    }

    /// The time in which the user makes a choice does not count toward the time limit of the launch.
    @Test func `the time that the user takes to choose is added to the budget`() {
        var launch = fresh()
        #expect(launch.tick(now: at(10), isPersonChoosing: false) == nil)
        #expect(launch.tick(now: at(10), isPersonChoosing: true) == nil)
        #expect(launch.tick(now: at(200), isPersonChoosing: true) == nil)
        #expect(launch.tick(now: at(210), isPersonChoosing: false) == nil)
        #expect(launch.deadline == at(230))
        #expect(launch.tick(now: at(230), isPersonChoosing: false) == .warn(.expired))
    }

    @Test func `repeated choices of the user share one ceiling`() {
        var launch = fresh()
        for round in 0..<10 {
            #expect(launch.tick(now: at(Double(round) * 66), isPersonChoosing: true) == nil)
            guard round < 9 else { break }
            #expect(launch.tick(now: at(Double(round) * 66 + 65), isPersonChoosing: false) == nil, "\(round)")
        }
        #expect(launch.tick(now: at(700), isPersonChoosing: true) == .warn(.expired))
    }

    /// The agent died, so the time at which the user began to choose is lost. A new agent assumes that this time was the start of
    /// the launch.
    @Test func `a choice that a new agent finds counts from the start of the launch`() {
        var launch = fresh()
        #expect(launch.tick(now: at(100), isPersonChoosing: true) == nil)
        #expect(launch.tick(now: at(101), isPersonChoosing: false) == nil)
        #expect(launch.deadline == at(131))
    }

    @Test func `a budget above the ceiling for choices is kept`() {
        var launch = LaunchSupervision(startedAt: start, budget: 900, grace: 5)
        #expect(launch.tick(now: at(0), isPersonChoosing: true) == nil)
        #expect(launch.deadline == at(900))
    }

    @Test func `a choice of the user does not delay the kill`() {
        var launch = fresh()
        #expect(launch.stop(.quit, now: at(1)) == .warn(.quit))
        #expect(launch.tick(now: at(6), isPersonChoosing: true) == .kill)
    }

    @Test(arguments: [StopReason.quit, .simulated, .conditionLost])
    func `a launch that is stopped for another reason is warned once and then killed`(_ reason: StopReason) {
        var launch = fresh()
        #expect(launch.stop(reason, now: at(3)) == .warn(reason))
        #expect(launch.stop(.quit, now: at(4)) == nil)
        #expect(launch.tick(now: at(7.9), isPersonChoosing: false) == nil)
        #expect(launch.tick(now: at(8), isPersonChoosing: false) == .kill)
        #expect(launch.stop(.quit, now: at(9)) == nil)
    }

    @Test func `a clock that is set neither ends nor prolongs a launch`() {
        var launch = fresh()
        launch.shift(by: -3_600)
        #expect(launch.deadline == at(30 - 3_600))
        launch.shift(by: 7_200)
        #expect(launch.tick(now: at(3_600 + 29), isPersonChoosing: false) == nil)
        #expect(launch.tick(now: at(3_600 + 30), isPersonChoosing: false) == .warn(.expired))
        launch.shift(by: -3_600)
        #expect(launch.tick(now: at(34), isPersonChoosing: false) == nil)
        #expect(launch.tick(now: at(35), isPersonChoosing: false) == .kill)
    }

    @Test func `an adopted launch that was warned gets the grace time again`() {
        var launch = fresh()
        launch.adoptWarned(now: at(100))
        #expect(launch.tick(now: at(104), isPersonChoosing: false) == nil)
        #expect(launch.tick(now: at(105), isPersonChoosing: false) == .kill)
    }

    @Test func `only outcomes that the app reports are results`() {
        let all: [LaunchOutcome] = [.completed, .failed, .expired, .killed, .crashed, .neverBegan, .skipped]
        #expect(all.filter { $0.isResult } == [.completed, .failed, .expired])
    }
}

@Suite struct RelaunchBackoffTests {
    @Test func `the delay doubles from its base up to six hours`() {
        let delays = (0...14).map { RelaunchBackoff.delay(afterFailures: $0, base: 5) }
        #expect(Array(delays.prefix(6)) == [0, 5, 10, 20, 40, 80])
        #expect(delays[13] == 20_480)
        #expect(delays[14] == 21_600)
        #expect(RelaunchBackoff.delay(afterFailures: 1_000_000, base: 5) == 21_600)
        #expect(RelaunchBackoff.delay(afterFailures: -3, base: 5) == 0)
        #expect(RelaunchBackoff.delay(afterFailures: 1, base: 50_000) == 21_600)
    }

    @Test func `the delay never decreases with more failures`() {
        for base in [0.1, 1, 5, 60, 3_600] {
            let delays = (0...60).map { RelaunchBackoff.delay(afterFailures: $0, base: base) }
            #expect(delays == delays.sorted())
        }
    }
}

@Suite struct SessionDeliveryTests {
    private let oldest = Date(timeIntervalSince1970: 1_750_000_000)

    private func verdict(_ seconds: Double, hasMoreRunning: Bool) -> SessionDelivery.Verdict {
        SessionDelivery.verdict(oldest: oldest, hasMoreRunning: hasMoreRunning, now: oldest.addingTimeInterval(seconds))
    }

    @Test func `events are delivered at once if no other transfer runs`() {
        #expect(verdict(0, hasMoreRunning: false) == .deliverNow)
    }

    @Test func `events wait at most five seconds while other transfers run`() {
        let end = oldest.addingTimeInterval(5)
        #expect(verdict(0, hasMoreRunning: true) == .wait(until: end))
        #expect(verdict(4.9, hasMoreRunning: true) == .wait(until: end))
        #expect(verdict(5, hasMoreRunning: true) == .deliverNow)
        #expect(verdict(4.9, hasMoreRunning: false) == .deliverNow)
    }

    @Test func `a clock that is set back does not delay events`() { #expect(verdict(-1, hasMoreRunning: true) == .deliverNow) }
}
