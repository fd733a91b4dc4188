import BackgroundScheduling
import Foundation
import Testing

@Suite struct RequestPlannerTests {
    private let now = Date(timeIntervalSince1970: 1_750_000_000)
    private let fine = DesktopConditions(isNetworkAvailable: true, isNetworkMetered: false, isOnExternalPower: true)
    private let nothing = DesktopConditions(isNetworkAvailable: false, isNetworkMetered: false, isOnExternalPower: false)

    private func request(
        _ identifier: String, begin: Double? = nil, network: Bool = false, power: Bool = false, backoff: Double? = nil,
        isLive: Bool = false, submitted: Double = -100
    ) -> PlannableRequest {
        PlannableRequest(
            identifier: identifier, kind: .appRefresh, earliestBegin: begin.map(now.addingTimeInterval),
            requiresNetwork: network, requiresExternalPower: power, runsInLowPowerMode: true,
            backoffUntil: backoff.map(now.addingTimeInterval),
            hasLiveLaunch: isLive, submittedAt: now.addingTimeInterval(submitted))
    }

    private func plan(_ requests: [PlannableRequest], _ conditions: DesktopConditions? = nil) -> RequestPlanner.Plan {
        RequestPlanner.plan(requests, in: PlanningWorld(conditions: conditions ?? fine), now: now)
    }

    @Test func nothingAskedIsDueAtOnce() { #expect(plan([request("a")]).due == ["a"]) }

    @Test func theMomentItselfIsDue() {
        #expect(plan([request("a", begin: 0)]).due == ["a"])
        let waiting = plan([request("a", begin: 0.001)])
        #expect(waiting.due == [])
        #expect(waiting.nextWake == now.addingTimeInterval(0.001))
    }

    @Test func theEarliestOfAllRequestsWakes() {
        let plan = plan([request("a", begin: 60), request("b", begin: 30), request("c", begin: 90)])
        #expect(plan.nextWake == now.addingTimeInterval(30))
    }

    @Test func theLatestOfOneRequestsTimesWakes() {
        #expect(plan([request("a", begin: 60, backoff: 300)]).nextWake == now.addingTimeInterval(300))
        #expect(plan([request("a", begin: -60, backoff: 300)]).nextWake == now.addingTimeInterval(300))
        #expect(plan([request("a", begin: -60, backoff: -1)]).due == ["a"])
    }

    @Test func conditionsAreNotATime() {
        let plan = plan([request("a", network: true), request("b", power: true)], nothing)
        #expect(plan.due == [])
        #expect(plan.nextWake == nil, "only an event can make them due")
    }

    /// Found by the proof of `why`: the network takes both away.
    @Test func afterASleepWhoNeedsANetworkWaitsForThatAlone() {
        let world = PlanningWorld(conditions: nothing, resumedAt: now)
        func unmet(_ request: PlannableRequest) -> [ConditionVerdict.Name] {
            RequestPlanner.verdicts(for: request, in: world, now: now).filter { !$0.met }.map(\.name)
        }
        #expect(unmet(request("a", network: true)) == [.networkConnectivity])
        #expect(unmet(request("a")) == [.networkAfterSleep])
    }

    @Test func oneThatRunsIsNotLaunchedAgain() {
        let plan = plan([request("a", isLive: true)])
        #expect(plan.due == [])
        #expect(plan.nextWake == nil)
    }

    @Test func theLongestWaitingComesFirst() {
        let plan = plan([
            request("late", begin: -10), request("early", begin: -50), request("old", submitted: -1_000),
            request("b", begin: -30), request("a", begin: -30),
        ])
        #expect(plan.due == ["old", "early", "a", "b", "late"])
    }

    @Test func everyConditionHasAVerdict() {
        let verdicts = RequestPlanner.verdicts(
            for: request("a", begin: 60, network: true, power: true, backoff: -5, isLive: true),
            in: PlanningWorld(conditions: nothing), now: now)
        #expect(verdicts.map(\.name) == [.earliestBeginDate, .networkConnectivity, .externalPower, .backoff, .notRunning])
        #expect(verdicts.map(\.met) == [false, false, false, true, false])
        #expect(verdicts.map(\.metAt) == [now.addingTimeInterval(60), nil, nil, nil, nil])
        #expect(RequestPlanner.verdicts(for: request("a"), in: PlanningWorld(conditions: nothing), now: now).isEmpty)
    }

    /// Whatever is asked: due means that every verdict is met, and sleeping until the wake misses nothing.
    @Test func plansAreSound() {
        var random = SeededGenerator(seed: 7)
        for _ in 0..<2_000 {
            let conditions = DesktopConditions(
                isNetworkAvailable: .random(using: &random), isNetworkMetered: .random(using: &random),
                isOnExternalPower: .random(using: &random))
            let requests = (0..<Int.random(in: 0...6, using: &random)).map { number in
                request(
                    "r\(number)", begin: Bool.random(using: &random) ? .random(in: -100...100, using: &random) : nil,
                    network: .random(using: &random), power: .random(using: &random),
                    backoff: Bool.random(using: &random) ? .random(in: -100...100, using: &random) : nil,
                    isLive: .random(using: &random))
            }
            let plan = plan(requests, conditions)
            func isMet(_ request: PlannableRequest, at date: Date) -> Bool {
                RequestPlanner.verdicts(for: request, in: PlanningWorld(conditions: conditions), now: date).allSatisfy(\.met)
            }
            #expect(Set(plan.due) == Set(requests.filter { isMet($0, at: now) }.map(\.identifier)))
            let waiting = requests.filter { !isMet($0, at: now) }
            if let wake = plan.nextWake {
                #expect(wake > now)
                let justBefore = wake.addingTimeInterval(-0.000_01)
                if justBefore > now { #expect(!waiting.contains { isMet($0, at: justBefore) }, "it slept past a request") }
            } else {
                #expect(!waiting.contains { isMet($0, at: .distantFuture) }, "it would sleep for ever")
            }
        }
    }
}

/// The same numbers every time: a failure can be looked at again.
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
