import BackgroundScheduling
import Foundation
import Testing

/// The effect of each event on a launch.
@Suite struct LaunchLifeTests {
    private let start = Date(timeIntervalSince1970: 1_750_000_000)
    private let limits = LaunchLife.Limits(budget: 30, grace: 5, continuation: 10)

    private func launch(
        _ kind: LaunchKind = .appRefresh, _ phase: LaunchLife.Phase = .running, timer: LaunchSupervision? = nil
    ) -> LaunchLife {
        LaunchLife(kind: kind, startedAt: start, phase: phase, timer: timer)
    }

    private func look(_ seconds: Double) -> LaunchLife.Event { .supervised(limits, now: start + seconds) }

    private func ended(_ end: ProcessEnd) -> LaunchLife.Event {
        .processEnded(end, now: start + 60)
    }

    private func outcome(_ life: LaunchLife) -> LaunchOutcome? {
        if case .ended(let outcome, at: _, after: _) = life.phase { outcome } else { nil }
    }

    // MARK: Stopping

    @Test func `a launch is warned when its budget is used up and killed after the grace time`() {
        var life = launch()
        #expect(life.handle(look(0)).isEmpty)
        #expect(life.killAt == nil)
        #expect(life.handle(look(30)) == [.logStop(.expired), .warn])
        #expect(life.phase == .stopping(.expired, hasProcess: true))
        #expect(life.killAt == start + 35)
        #expect(life.handle(look(35)) == [.kill])
        #expect(life.handle(look(99)).isEmpty)
    }

    @Test func `the first reason to stop counts`() {
        var life = launch()
        #expect(life.handle(.stopWanted(.quit, limits, now: start)) == [.logStop(.quit), .warn])
        #expect(life.handle(.stopWanted(.simulated, limits, now: start)).isEmpty)
        _ = life.handle(.stopRecorded(.cancelled))
        #expect(life.phase == .stopping(.quit, hasProcess: true))
    }

    @Test func `a new agent warns again`() {
        var life = launch(.appRefresh, .stopping(.quit, hasProcess: true))
        #expect(life.handle(look(100)) == [.warn])
        #expect(life.killAt == start + 105)
    }

    @Test func `continued processing is neither signalled nor killed`() {
        var life = launch(.continuedProcessing)
        #expect(life.handle(look(30)) == [.logStop(.noProgress)])
        #expect(life.handle(look(35)) == [.end])
        _ = life.handle(ended(.unknown))
        #expect(outcome(life) == .failed)
        #expect(life.detail == "did not stop; its process was left alone")
    }

    @Test func `a lost condition is in the history`() {
        var life = launch()
        let look = LaunchLife.Event.supervised(limits, lostCondition: "the network was lost", now: start)
        #expect(life.handle(look) == [.logStop(.conditionLost), .warn])
        #expect(life.detail == "the network was lost")
    }

    @Test func `a warning while the ledger could not be written is recorded later`() {
        var timer = LaunchSupervision(startedAt: start, budget: 30, grace: 5)
        _ = timer.tick(now: start + 31, isPersonChoosing: false)
        var life = launch(timer: timer)
        #expect(life.handle(look(32)).isEmpty)
        #expect(life.phase == .stopping(.expired, hasProcess: true))
    }

    @Test func `a launch with a result continues while its transfers do`() {
        var life = launch()
        _ = life.handle(look(0))
        _ = life.handle(.resultRecorded(.completed, detail: nil))
        #expect(life.handle(look(28)).isEmpty)
        #expect(life.handle(look(42)).isEmpty)
        #expect(life.handle(look(43)) == [.logStop(.expired), .warn])
    }

    // MARK: Ending

    @Test func `an outcome follows from the result, the reason and the process`() {
        func end(_ phase: LaunchLife.Phase, _ end: ProcessEnd, _ events: LaunchLife.Event...) -> LaunchOutcome? {
            var life = launch(.appRefresh, phase)
            for event in events { _ = life.handle(event) }
            _ = life.handle(ended(end))
            return outcome(life)
        }
        #expect(end(.running, .exited(0)) == .crashed)
        #expect(end(.stopping(.expired, hasProcess: true), .signalled(9)) == .killed)
        #expect(end(.starting, .unknown) == .neverBegan)
        #expect(end(.starting, .unknown, .notStarted(because: "no such file")) == .crashed)
        #expect(end(.starting, .signalled(11)) == .crashed)
        #expect(end(.running, .signalled(9), .resultRecorded(.completed, detail: nil)) == .completed)
        #expect(end(.running, .exited(78), .abandoned(because: "no disk")) == .crashed)
    }

    @Test func `a result does not count while an event is delivered`() {
        var life = launch(.urlSession)
        _ = life.handle(.resultRecorded(.completed, detail: nil))
        _ = life.handle(.processEnded(.signalled(9), wasInterrupted: true, now: start))
        #expect(outcome(life) == .crashed)
    }

    @Test func `the history describes the end`() {
        func detail(_ events: LaunchLife.Event...) -> String? {
            var life = launch()
            for event in events { _ = life.handle(event) }
            return life.detail
        }
        #expect(detail(ended(.exited(3))) == "exited with 3 without a result")
        #expect(detail(ended(.signalled(11))) == "ended by signal 11")
        #expect(detail(.resultRecorded(.completed, detail: "told"), ended(.exited(0))) == "told")
        let delivery = LaunchLife.Event.processEnded(.exited(0), note: "resumed", now: start)
        #expect(detail(.resultRecorded(.completed, detail: nil), delivery) == "resumed")
        let expired = LaunchLife.Event.resultRecorded(.expired, detail: nil)
        #expect(detail(.stopWanted(.quit, limits, now: start), expired, delivery) == "all background work was ended")
    }
}
