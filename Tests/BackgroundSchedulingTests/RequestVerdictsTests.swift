import BackgroundScheduling
import Foundation
import Testing

/// Tests of conditions that delay a request, and of the date at which the delay ends without a change of the conditions.
@Suite struct RequestVerdictsTests {
    private let now = Date(timeIntervalSince1970: 1_750_000_000)
    private let fine = DesktopConditions(isNetworkAvailable: true, isNetworkMetered: false, isOnExternalPower: true)
    private let nothing = DesktopConditions(isNetworkAvailable: false, isNetworkMetered: false, isOnExternalPower: false)

    private func request(
        begin: Double? = nil, network: Bool = false, power: Bool = false, backoff: Double? = nil, isLive: Bool = false
    ) -> RequestLife {
        RequestLife(
            terms: RequestLife.Terms(
                kind: .appRefresh,
                needs: RequestNeeds(of: .appRefresh, network: network, externalPower: power, runsInLowPowerMode: true)),
            submittedAt: now - 100, phase: isLive ? .serving(generation: 1) : .pending, token: "t",
            earliestBegin: begin.map(now.addingTimeInterval),
            delay: backoff.map { RequestLife.Delay(until: now + $0, reason: .failures) }, failures: 1)
    }

    private func isDue(_ request: RequestLife, _ conditions: DesktopConditions? = nil, at date: Date? = nil) -> Bool {
        request.verdicts(in: PlanningWorld(conditions: conditions ?? fine), now: date ?? now).allSatisfy(\.met)
    }

    private func nextAttempt(_ request: RequestLife, _ conditions: DesktopConditions? = nil) -> Date? {
        request.nextAttempt(in: PlanningWorld(conditions: conditions ?? fine), now: now)
    }

    @Test func `a request without conditions is due at once`() { #expect(isDue(request())) }

    @Test func `a request is due at its begin date and not before`() {
        #expect(isDue(request(begin: 0)))
        #expect(!isDue(request(begin: 0.001)))
        #expect(nextAttempt(request(begin: 0.001)) == now + 0.001)
    }

    @Test func `the next attempt is the latest of the dates of a request`() {
        #expect(nextAttempt(request(begin: 60, backoff: 300)) == now + 300)
        #expect(nextAttempt(request(begin: -60, backoff: 300)) == now + 300)
        #expect(isDue(request(begin: -60, backoff: -1)))
    }

    @Test func `a request without its conditions has no next attempt`() {
        #expect(!isDue(request(network: true), nothing))
        #expect(
            nextAttempt(request(begin: 60, network: true), nothing) == nil, "the request waits for an event, so no date is known")
        #expect(nextAttempt(request(power: true), nothing) == nil)
    }

    /// After a sleep, the request waits for a network and for the end of a delay. A network ends both waits, so only one
    /// condition is shown.
    @Test func `a request has one unmet network condition after a sleep`() {
        let world = PlanningWorld(conditions: nothing, resumedAt: now)
        func unmet(_ request: RequestLife) -> [ConditionVerdict.Name] {
            request.verdicts(in: world, now: now).filter { !$0.met }.map(\.name)
        }
        #expect(unmet(request(network: true)) == [.networkConnectivity])
        #expect(unmet(request()) == [.networkAfterSleep])
    }

    @Test func `a running request is not launched again`() {
        #expect(!isDue(request(isLive: true)))
        #expect(nextAttempt(request(isLive: true)) == nil)
    }

    @Test func `every condition of a request has a verdict`() {
        let verdicts = request(begin: 60, network: true, power: true, backoff: -5, isLive: true)
            .verdicts(in: PlanningWorld(conditions: nothing), now: now)
        #expect(verdicts.map(\.name) == [.earliestBeginDate, .networkConnectivity, .externalPower, .backoff, .notRunning])
        #expect(verdicts.map(\.met) == [false, false, false, true, false])
        #expect(verdicts.map(\.metAt) == [now + 60, nil, nil, nil, nil])
        #expect(request().verdicts(in: PlanningWorld(conditions: nothing), now: now).isEmpty)
    }

    /// The agent computes the date of the next attempt. Under all conditions, the request is not due before this date, and is due
    /// at this date.
    @Test func `the next attempt is the first date at which a request is due`() {
        var random = SeededGenerator(seed: 7)
        for _ in 0..<10_000 {
            let conditions = DesktopConditions(
                isNetworkAvailable: .random(using: &random), isNetworkMetered: .random(using: &random),
                isOnExternalPower: .random(using: &random))
            let request = request(
                begin: Bool.random(using: &random) ? .random(in: -100...100, using: &random) : nil,
                network: .random(using: &random), power: .random(using: &random),
                backoff: Bool.random(using: &random) ? .random(in: -100...100, using: &random) : nil,
                isLive: .random(using: &random))
            guard let next = nextAttempt(request, conditions) else {
                #expect(isDue(request, conditions) || !isDue(request, conditions, at: .distantFuture))
                continue
            }
            #expect(next > now)
            #expect(!isDue(request, conditions))
            #expect(!isDue(request, conditions, at: max(now, next - 0.000_01)))
            #expect(isDue(request, conditions, at: next))
        }
    }
}

/// A generator that returns the same numbers in each run, so that a failure can be repeated.
struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) { state = seed &* 0x9E37_79B9_7F4A_7C15 | 1 }

    mutating func next() -> UInt64 {
        state ^= state << 13
        state ^= state >> 7
        state ^= state << 17
        return state &* 0x2545_F491_4F6C_DD1D
    }
}
