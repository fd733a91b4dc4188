import BackgroundScheduling
import Foundation
import Testing

/// Tests of how each event changes a request.
@Suite struct RequestLifeTests {
    private let now = Date(timeIntervalSince1970: 1_749_542_400)
    private let noon = Date(timeIntervalSince1970: 1_749_556_800)
    private let zone = TimeZone.gmt

    private func request(
        daily: Bool = false, missed: MissedPolicy = .once, begin: Date? = nil, failures: Int = 0,
        delay: RequestLife.Delay? = nil, kind: LaunchKind = .appRefresh
    ) -> RequestLife {
        RequestLife(
            terms: RequestLife.Terms(
                kind: kind, needs: [], recurrence: daily ? .daily(.noon) : nil, spread: daily ? 90 : 0, missed: missed),
            submittedAt: now, token: "first", earliestBegin: begin, delay: delay, failures: failures)
    }

    /// Returns a daily request that was submitted in the morning.
    private func daily(_ missed: MissedPolicy = .once) -> RequestLife {
        var life = request(daily: true, missed: missed)
        _ = life.handle(.submitted(), now: now, in: zone)
        return life
    }

    private func ending(
        _ outcome: LaunchOutcome, token: String = "first", after stopReason: StopReason? = nil, served: Date? = nil,
        failedInARow: Int = 1
    ) -> RequestLife.Event {
        .ended(
            RequestLife.Ending(
                token: token, outcome: outcome, stopReason: stopReason, served: served,
                history: RequestLife.History(lastServed: nil, failedInARow: failedInARow, backoffBase: 5), newToken: "new"))
    }

    private func launched(_ life: RequestLife) -> RequestLife {
        var life = life
        _ = life.handle(.launched(isSimulated: false), now: now, in: zone)
        return life
    }

    /// Returns the request after its handler has submitted it again for `begin`.
    private func resubmitted(_ life: RequestLife, begin: Date?) -> RequestLife {
        var next = RequestLife(
            terms: life.terms, submittedAt: now, phase: life.phase, token: "second", earliestBegin: begin)
        _ = next.handle(.submitted(replacing: life), now: now, in: zone)
        return next
    }

    // MARK: Submitting

    @Test func `a daily request waits for its next occurrence and its spread`() {
        let life = daily()
        #expect(life.occurrence == noon)
        #expect(life.earliestBegin == noon + 90)
        #expect(life.dueAt == noon + 90)
    }

    @Test func `a request without a date waits for the pause of the system's discretion`() {
        var life = request()
        #expect(life.handle(.submitted(pause: 300), now: now, in: zone).isEmpty)
        #expect(life.delay == RequestLife.Delay(until: now + 300, reason: .discretion))
        var dated = request(begin: now + 60)
        _ = dated.handle(.submitted(pause: 300), now: now, in: zone)
        #expect(dated.delay == nil)
    }

    @Test func `an occurrence that is due is not dropped by a submit of the same rule`() {
        var next = request(daily: true)
        _ = next.handle(.submitted(replacing: daily()), now: noon + 3_600, in: zone)
        #expect(next.occurrence == noon)
        var served = request(daily: true)
        _ = served.handle(.submitted(replacing: daily(), lastServed: noon), now: noon + 3_600, in: zone)
        #expect(served.occurrence == noon + 86_400, "it was served")
    }

    // MARK: Launching

    @Test func `a request that a launch serves is not launched again`() {
        var life = daily()
        let commands = life.handle(.launched(isSimulated: false), now: noon + 90, in: zone)
        #expect(commands == [.begin(generation: 1, reason: "due", served: noon)])
        #expect(life.handle(.launched(isSimulated: false), now: noon + 90, in: zone).isEmpty)
        #expect(life.handle(.launched(isSimulated: true), now: noon + 90, in: zone).isEmpty)
    }

    @Test func `one launch serves the last of the occurrences that came`() {
        var life = daily()
        let commands = life.handle(.launched(isSimulated: false), now: noon + 3 * 86_400, in: zone)
        #expect(commands == [.begin(generation: 1, reason: "due", served: noon + 3 * 86_400)])
    }

    @Test func `continued processing is removed when it begins`() {
        var life = request(kind: .continuedProcessing)
        let commands = life.handle(.launched(isSimulated: false), now: now, in: zone)
        #expect(
            commands == [.begin(generation: 1, reason: "the user started the request", served: nil), .remove])
        #expect(life.phase == .removed)
    }

    // MARK: Ending

    @Test(arguments: [LaunchOutcome.completed, .failed, .expired])
    func `a result consumes the request`(_ outcome: LaunchOutcome) {
        var life = launched(request())
        #expect(life.handle(ending(outcome), now: now, in: zone) == [.remove])
        #expect(life.phase == .removed)
        #expect(life.handle(.launched(isSimulated: false), now: now, in: zone).isEmpty)
    }

    @Test func `a daily request is planned again after a result`() {
        var life = daily()
        _ = life.handle(.launched(isSimulated: false), now: noon + 90, in: zone)
        #expect(life.handle(ending(.completed, served: noon), now: noon - 60, in: zone) == [.planned])
        #expect(life.phase == .pending)
        #expect(life.occurrence == noon + 86_400, "the clock was set back")
    }

    @Test func `a launch without a result is repeated after a delay`() {
        var life = launched(request(failures: 1))
        #expect(life.handle(ending(.crashed, failedInARow: 2), now: now, in: zone).isEmpty)
        #expect(life.phase == .pending)
        #expect(life.failures == 2)
        #expect(life.lastFailureAt == now)
        #expect(life.delay == RequestLife.Delay(until: now + 10, reason: .failures))
        #expect(launched(life).phase == .serving(generation: 3))
    }

    @Test(
        arguments: [
            (LaunchOutcome.crashed, nil, ProcessEnd.exited(0), true), (.killed, .expired, .signalled(9), true),
            (.crashed, nil, .exited(1), false), (.crashed, nil, .signalled(11), false), (.killed, .quit, .signalled(9), false),
        ] as [(LaunchOutcome, StopReason?, ProcessEnd, Bool)])
    func `a launch that began transfers is repeated only after a crash`(
        _ outcome: LaunchOutcome, _ stopReason: StopReason?, _ end: ProcessEnd, _ isConsumed: Bool
    ) {
        for hasTransfers in [true, false] {
            let ending = RequestLife.Ending(
                token: "first", outcome: outcome, stopReason: stopReason, end: end, hasTransfers: hasTransfers, served: nil,
                history: RequestLife.History(lastServed: nil, failedInARow: 1, backoffBase: 5), newToken: "new")
            var life = launched(request())
            _ = life.handle(.ended(ending), now: now, in: zone)
            #expect((life.phase == .removed) == (isConsumed && hasTransfers))
            var daily = launched(daily())
            _ = daily.handle(.ended(ending), now: now, in: zone)
            #expect(daily.failures == 1, "a daily request is repeated")
        }
    }

    @Test func `a launch that never began earns no delay`() {
        var life = launched(request())
        _ = life.handle(ending(.neverBegan, failedInARow: 3), now: now, in: zone)
        #expect(life.delay == nil)
    }

    @Test func `a request whose condition was lost waits for it again`() {
        var life = launched(request(failures: 1))
        #expect(life.handle(ending(.expired, after: .conditionLost), now: now, in: zone).isEmpty)
        #expect(life.phase == .pending)
        #expect(life.failures == 0)
    }

    @Test func `a launch without a result is repeated before the request that its handler submitted`() {
        let later = now + 86_400
        var life = resubmitted(launched(request()), begin: later)
        #expect(life.phase == .serving(generation: 1), "the launch still runs")
        _ = life.handle(ending(.crashed), now: now + 1, in: zone)
        #expect(life.earliestBegin == now + 1)
        #expect(life.beginAfterRetry == later)
        life = launched(life)
        #expect(life.handle(ending(.completed, token: "second"), now: now + 9, in: zone).isEmpty)
        #expect(life.phase == .pending)
        #expect(life.token == "new")
        #expect(life.earliestBegin == later)
        #expect(life.beginAfterRetry == nil)
    }

    @Test func `a result does not consume the request that its handler submitted`() {
        var life = resubmitted(launched(request()), begin: now + 60)
        #expect(life.handle(ending(.completed), now: now, in: zone).isEmpty)
        #expect(life.phase == .pending)
        #expect(life.earliestBegin == now + 60)
    }

    @Test func `a clock that is set back during a launch does not repeat the occurrence that the handler submitted again`() {
        var life = daily()
        _ = life.handle(.launched(isSimulated: false), now: noon + 90, in: zone)
        var next = RequestLife(terms: life.terms, submittedAt: noon + 91, phase: life.phase, token: "second", earliestBegin: nil)
        _ = next.handle(.submitted(replacing: life, served: noon), now: noon + 91, in: zone)
        #expect(next.occurrence == noon + 86_400)
        _ = next.handle(.clockChanged(.init(lastServed: nil)), now: noon - 3_600, in: zone)
        _ = next.handle(ending(.completed, served: noon), now: noon - 3_600, in: zone)
        #expect(next.occurrence == noon + 86_400)
    }

    @Test func `a clock that is set back does not hold back a launch that is repeated`() {
        // The handler has submitted the next request. The launch failed while the clock was two days ahead.
        let later = now + 2 * 86_400
        var dated = resubmitted(launched(request()), begin: later + 86_400)
        _ = dated.handle(ending(.crashed), now: later, in: zone)
        _ = dated.handle(.clockChanged(.init(lastServed: nil, failedInARow: 1, backoffBase: 5)), now: now, in: zone)
        #expect(dated.dueAt == now + 5)
        var daily = daily()
        _ = daily.handle(.launched(isSimulated: false), now: noon + 90, in: zone)
        daily = RequestLife(
            terms: daily.terms, submittedAt: noon, phase: daily.phase, token: "second", earliestBegin: noon + 86_400)
        _ = daily.handle(ending(.crashed, served: noon), now: later, in: zone)
        _ = daily.handle(.clockChanged(.init(lastServed: nil, failedInARow: 1, backoffBase: 5)), now: noon + 600, in: zone)
        #expect(daily.occurrence == noon)
        #expect(daily.dueAt == noon + 605)
    }

    @Test func `an end that is reported twice changes nothing`() {
        var life = launched(request())
        _ = life.handle(ending(.crashed), now: now, in: zone)
        let before = life
        #expect(life.handle(ending(.completed), now: now, in: zone).isEmpty)
        #expect(life == before)
    }

    // MARK: Clocks

    @Test func `a clock that is set back does not prolong a delay`() {
        var life = request(failures: 2, delay: .init(until: now + 10, reason: .failures))
        _ = life.handle(.clockChanged(.init(lastServed: nil, failedInARow: 2, backoffBase: 5)), now: now - 3_600, in: zone)
        #expect(life.delay?.until == now - 3_590)
    }

    @Test func `another zone has another noon`() throws {
        var life = daily()
        let newYork = try #require(TimeZone(identifier: "America/New_York"))
        #expect(life.handle(.clockChanged(.init(lastServed: nil)), now: now, in: newYork) == [.planned])
        #expect(life.occurrence == noon + 4 * 3_600)
    }

    @Test func `an occurrence that has come is not planned again`() {
        var life = daily()
        #expect(life.handle(.clockChanged(.init(lastServed: nil)), now: noon + 86_400, in: zone).isEmpty)
        #expect(life.occurrence == noon)
    }

    @Test func `only an occurrence that passed unseen is skipped`() {
        var life = daily(.skip)
        let late = noon + 90 + RequestLife.lateness
        #expect(life.handle(.unwatched(until: late), now: late, in: zone).isEmpty)
        #expect(life.handle(.unwatched(until: now), now: noon + 86_000, in: zone).isEmpty, "an agent was running all the time")
        #expect(life.handle(.unwatched(until: late + 1), now: late + 1, in: zone) == [.skip(noon), .planned])
        #expect(life.occurrence == noon + 86_400)
        var once = daily(.once)
        #expect(once.handle(.unwatched(until: late + 1), now: late + 1, in: zone).isEmpty)
    }

    @Test func `a changed app ends the delay after failures and no other`() {
        for reason in [RequestLife.Delay.Reason.failures, .discretion] {
            var life = request(failures: reason == .failures ? 2 : 0, delay: .init(until: now + 10, reason: reason))
            _ = life.handle(.appChanged, now: now, in: zone)
            #expect((life.delay == nil) == (reason == .failures))
        }
    }
}
