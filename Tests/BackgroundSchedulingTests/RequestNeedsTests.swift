import BackgroundScheduling
import Foundation
import Testing

/// Tests of the classes and the order of requests, and of the delay that follows a sleep of the machine.
@Suite struct RequestNeedsTests {
    private let now = Date(timeIntervalSince1970: 1_750_000_000)

    private func conditions(network: Bool = true, power: Bool = true, low: Bool = false) -> DesktopConditions {
        DesktopConditions(
            isNetworkAvailable: network, isNetworkMetered: false, isOnExternalPower: power, isLowPowerMode: low)
    }

    private func request(_ kind: LaunchKind = .appRefresh, network: Bool = false, power: Bool = false, low: Bool = false)
        -> RequestLife
    {
        RequestLife(
            terms: RequestLife.Terms(
                kind: kind, needs: RequestNeeds(of: kind, network: network, externalPower: power, runsInLowPowerMode: low)),
            submittedAt: now, token: "t", earliestBegin: nil)
    }

    private func isDue(_ request: RequestLife, _ world: PlanningWorld) -> Bool {
        request.verdicts(in: world, now: now).allSatisfy(\.met)
    }

    /// A class of requests is open if and only if its conditions are met. The requests of an open class can be delayed only by
    /// time. The code contains this rule in two forms, which must have equal results.
    @Test func `a class is open if and only if its verdicts are met`() {
        let bits = [false, true]
        for network in bits {
            for power in bits {
                for low in bits {
                    for resumed in [nil, now - 10, now - 40, now + 5] {
                        let world = PlanningWorld(
                            conditions: conditions(network: network, power: power, low: low), resumedAt: resumed)
                        let open = world.openClasses(now: now)
                        for kind in [LaunchKind.appRefresh, .processing] {
                            for needs in 0..<8 {
                                let request = request(
                                    kind, network: needs & 1 != 0, power: needs & 2 != 0, low: needs & 4 != 0)
                                #expect(open.contains(request.terms.needs) == isDue(request, world))
                            }
                        }
                    }
                }
            }
        }
    }

    @Test func `requests wait in low power mode on battery unless they opt in`() {
        let saving = PlanningWorld(conditions: conditions(power: false, low: true))
        #expect(!isDue(request(), saving))
        #expect(!isDue(request(.processing), saving))
        #expect(isDue(request(low: true), saving), "the request may run during power saving")
        // A machine on external power is not in power saver mode.
        let plugged = PlanningWorld(conditions: conditions(low: true))
        #expect(isDue(request(), plugged))
    }

    @Test func `after a sleep a refresh waits for the network for a limited time`() throws {
        let world = PlanningWorld(conditions: conditions(network: false), resumedAt: now - 10)
        #expect(!isDue(request(), world))
        #expect(request().nextAttempt(in: world, now: now) == now + 20, "the wait for a network ends")
        #expect(isDue(request(.processing), world), "the request does not require a network")
        let back = PlanningWorld(conditions: conditions(), resumedAt: now - 10)
        #expect(isDue(request(), back))
    }

    @Test func `requests that are due at the same time start one after the other`() {
        var world = PlanningWorld(conditions: conditions(), lastStart: now - 0.25, spacing: 1)
        #expect(!isDue(request(), world))
        #expect(request().nextAttempt(in: world, now: now) == now + 0.75)
        #expect(request().verdicts(in: world, now: now).last?.name == .turn)
        world.lastStart = now - 1
        #expect(isDue(request(), world))
        world.lastStart = now + 3_600
        #expect(isDue(request(), world), "a clock that was set back does not delay the request")
    }

    // MARK: Wake causes

    @Test func `the wake cause is the latest change that the request waited for`() {
        func cause(
            _ request: RequestLife, network: Double? = nil, power: Double? = nil, resumed: Double? = nil,
            agent: Double? = nil
        )
            -> WakeCause
        {
            func moment(_ offset: Double?) -> Date? { offset.map { now + $0 } }
            let moments = WakeCause.ConditionDates(
                network: moment(network), power: moment(power), saving: nil, resumed: moment(resumed), agentStarted: moment(agent)
            )
            return WakeCause.of(request, moments, now: now)
        }
        func asked(network: Bool) -> RequestLife {
            RequestLife(
                terms: request(.processing, network: network, power: true).terms, submittedAt: now - 1_000, token: "t",
                earliestBegin: now - 100)
        }
        let free = asked(network: false)
        let asked = asked(network: true)
        #expect(cause(asked, network: -500, power: -500, resumed: -500, agent: -500) == .time)
        #expect(cause(asked, network: -50, power: -500) == .network)
        #expect(cause(asked, network: -50, power: -20) == .power)
        #expect(cause(asked, resumed: -1, agent: -500) == .resumed)
        #expect(cause(asked, agent: -1) == .agentStarted)
        #expect(cause(asked, network: 5) == .time, "a future event is not the cause")
        #expect(cause(free, network: -50) == .time, "the request does not require a network")
    }
}

@Suite struct SignificantTimeTests {
    private func time(_ text: String, _ zone: String) throws -> SignificantTime {
        SignificantTime(at: try Date(text, strategy: .iso8601), in: try #require(TimeZone(identifier: zone)))
    }

    @Test func `a new day, a clock change and a new time zone are significant changes`() throws {
        let start = try time("2025-03-29T10:00:00Z", "Europe/Berlin")
        #expect(try time("2025-03-29T22:59:59Z", "Europe/Berlin").change(since: start) == nil)
        #expect(try time("2025-03-29T23:00:00Z", "Europe/Berlin").change(since: start) == "a new day began")
        let night = try time("2025-03-30T00:30:00Z", "Europe/Berlin")
        #expect(try time("2025-03-30T01:00:00Z", "Europe/Berlin").change(since: night) == "the clocks changed by 60 min")
        let moved = try time("2025-03-29T10:00:00Z", "Asia/Tokyo").change(since: start)
        #expect(moved == "the time zone changed from Europe/Berlin to Asia/Tokyo")
    }

    @Test func `the next significant change is midnight or a clock change`() throws {
        let berlin = try #require(TimeZone(identifier: "Europe/Berlin"))
        func next(_ text: String) throws -> String {
            SignificantTime.nextChange(after: try Date(text, strategy: .iso8601), in: berlin).formatted(.iso8601)
        }
        #expect(try next("2025-03-29T10:00:00Z") == "2025-03-29T23:00:00Z")
        #expect(try next("2025-03-29T23:00:00Z") == "2025-03-30T01:00:00Z")
        #expect(try next("2025-03-30T01:00:00Z") == "2025-03-30T22:00:00Z")
    }
}

@Suite struct ContinuedProcessingTests {
    @Test func `at most four continued processing requests run`() {
        #expect(ContinuedProcessing.startable(["a", "b", "c", "d", "e"], running: []) == ["a", "b", "c", "d"])
        #expect(ContinuedProcessing.startable(["a", "b"], running: ["x", "y", "z"]) == ["a"])
        #expect(ContinuedProcessing.startable(["a"], running: ["w", "x", "y", "z"]).isEmpty)
    }

    @Test func `an identifier that runs is not started again`() {
        #expect(ContinuedProcessing.startable(["a", "b"], running: ["a"]) == ["b"])
    }

    @Test(
        arguments: [
            (nil, nil, nil), (0, 0, nil), (1, 3, 33), (3, 3, 100), (5, 3, 100), (-1, 3, 0), (2, nil, nil),
        ] as [(Int64?, Int64?, Int?)])
    func `progress is 0 to 100 per cent, and nil without a total`(_ done: Int64?, _ total: Int64?, _ percent: Int?) {
        #expect(ContinuedProcessing.percent(done: done, total: total) == percent)
    }
}
