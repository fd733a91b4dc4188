import BackgroundScheduling
import Foundation
import Testing

/// Tests of generated sequences of events of a request: launches, crashes, clock changes, zone changes, and submits at any time.
@Suite struct RequestLifeSequenceTests {
    /// Runs a hundred thousand random sequences of events.
    @Test(arguments: 0..<20) func `a request is served once whatever happens`(_ part: UInt64) {
        for seed in part * 5_000..<(part + 1) * 5_000 {
            var world = RequestWorld(seed: seed + 1)
            world.run()
            guard !world.broken.isEmpty else { continue }
            world = RequestWorld(seed: seed + 1, isTold: true)
            world.run()
            Issue.record("seed \(seed): \(world.broken.joined(separator: "; "))\n\(world.story.joined(separator: "\n"))")
            return
        }
    }
}

/// A request, its launches and a clock, without a ledger and without an agent. The test changes the `RequestLife` as the agent
/// and the ledger would change it.
private struct RequestWorld {
    private struct Launch {
        let token: String
        let generation: Int
        var served: Date?
        var startedAt: Date
        var outcome: LaunchOutcome?
    }

    /// An occurrence whose launch had a result. Contains the earliest time that the clock showed since this result, and how far
    /// the clock was ahead.
    private struct Served {
        var earliest: Date
        let lead: Double
        var leastLead: Double
    }

    private static let zones = ["Europe/Berlin", "America/New_York", "Asia/Tokyo", "Pacific/Auckland"].map {
        TimeZone(identifier: $0)!
    }

    private var dice: SeededGenerator
    private(set) var broken: [String] = []
    /// The events so far. The events are recorded only in a run that has to report its events.
    private(set) var story: [String] = []
    private let isTold: Bool
    private let terms: RequestLife.Terms
    private var life: RequestLife
    private var now = Date(timeIntervalSince1970: 1_749_542_400)
    /// The number of seconds that passed, independent of the clock.
    private var passed = 0.0
    private var zone = Self.zones[0]
    private var hasAgent = true
    private var live: Launch?
    private var history: [Launch] = []
    private var served: [Date: Served] = [:]
    /// The number of accepted requests that have no launch with a result yet. The oldest of these requests is launched next.
    private var owed = 0
    private var tokens = 0

    init(seed: UInt64, isTold: Bool = false) {
        self.isTold = isTold
        var dice = SeededGenerator(seed: seed)
        let recurs = Int.random(in: 0..<3, using: &dice) > 0
        let skips = recurs && Int.random(in: 0..<3, using: &dice) == 0
        self.dice = dice
        terms = RequestLife.Terms(
            kind: .appRefresh, needs: [], recurrence: recurs ? .daily(.noon) : nil, spread: recurs ? 40 : 0,
            missed: skips ? .skip : .once)
        life = RequestLife(terms: terms, submittedAt: now, phase: .removed, token: "", earliestBegin: nil)
        submit()
    }

    mutating func run() {
        for _ in 0..<12 { step() }
        calmDown()
    }

    private mutating func chance(_ share: Double) -> Bool { Double.random(in: 0..<1, using: &dice) < share }

    private mutating func found(_ what: String) { broken.append(what) }

    // MARK: Events

    private mutating func step() {
        switch Int.random(in: 0..<16, using: &dice) {
        case 0...4: pass(chance(0.5) ? .random(in: 0..<600, using: &dice) : .random(in: 0..<100_000, using: &dice))
        case 5...8: endLaunch()
        case 9: setClock()
        case 10:
            zone = Self.zones.randomElement(using: &dice)!
            if hasAgent { replan() }
        case 11: submit()
        case 12: if hasAgent { send(.launched(isSimulated: true)) }
        case 13: send(.appChanged)
        case 14:
            hasAgent.toggle()
            if hasAgent { look() }
        default: if live != nil { submit() }
        }
        turn()
    }

    private mutating func pass(_ seconds: Double) {
        // The agent wakes up when the request becomes due.
        if hasAgent, life.phase == .pending, life.dueAt > now, life.dueAt < now + seconds {
            let rest = seconds - life.dueAt.timeIntervalSince(now)
            passed += seconds - rest
            now = life.dueAt
            turn()
            return pass(rest)
        }
        now += seconds
        passed += seconds
    }

    private mutating func setClock() {
        let span = [3_600.0, 7_200, 90_000, 400_000, 31_536_000].randomElement(using: &dice)!
        let shift = Double.random(in: -span...span, using: &dice)
        now += shift
        for occurrence in served.keys {
            served[occurrence]!.earliest = min(served[occurrence]!.earliest, now)
            served[occurrence]!.leastLead = min(served[occurrence]!.leastLead, lead)
        }
        guard hasAgent else { return }
        mend(beyond: shift < -WallClockRule.servedAhead ? now : now + WallClockRule.servedAhead)
        look()
    }

    private var lead: Double { now.timeIntervalSince1970 - passed }

    /// Handles the start of an agent or a change of the clock.
    private mutating func look() {
        mend(beyond: now + WallClockRule.servedAhead)
        replan()
        send(.unwatched(until: now))
    }

    private mutating func replan() {
        send(.clockChanged(RequestLife.History(lastServed: lastServed, failedInARow: failedInARow, backoffBase: 5)))
    }

    /// Launches the request if it is due.
    private mutating func turn() {
        if hasAgent, life.phase == .pending, life.dueAt <= now { send(.launched(isSimulated: false)) }
    }

    private mutating func submit() {
        tokens += 1
        var next = RequestLife(
            terms: terms, submittedAt: now, phase: live.map { .serving(generation: $0.generation) } ?? .pending,
            token: "t\(tokens)",
            earliestBegin: terms.recurrence == nil && chance(0.7) ? now + .random(in: -60..<200_000, using: &dice) : nil)
        // The handler of the running launch or a user submits the request.
        let isHandler = live != nil && chance(0.7)
        let isDue = life.phase == .pending && life.occurrence ?? .distantFuture <= now
        let due = life.occurrence
        let own = isHandler ? live?.served : nil
        let event = RequestLife.Event.submitted(
            replacing: life.phase == .removed ? nil : life, served: own, lastServed: lastServed,
            pause: isHandler && chance(0.5) ? 300 : 0)
        let commands = next.handle(event, now: now, in: zone)
        life = next
        if isTold { story.append("\(now): submitted, for \(String(describing: life.occurrence)), by handler: \(isHandler)") }
        carryOut(commands)
        if isDue, let due, lastServed ?? .distantPast < due, life.occurrence != due { found("a due occurrence was dropped") }
        // If a user submits the request, the test ignores earlier launches that only a wrong clock caused.
        if own == nil { served = [:] }
        // If a launch is running, two requests still need a launch with a result: the request of the running launch, and the new
        // request.
        owed = live == nil ? 1 : 2
    }

    private mutating func endLaunch(_ given: LaunchOutcome? = nil) {
        guard var launch = live else { return }
        let outcomes: [LaunchOutcome] = [.completed, .completed, .failed, .expired, .killed, .crashed, .neverBegan]
        let outcome = given ?? outcomes.randomElement(using: &dice)!
        let stopReason: StopReason? = outcome == .expired ? chance(0.5) ? .conditionLost : .expired : nil
        live = nil
        launch.outcome = outcome
        history.append(launch)
        tokens += 1
        let before = life
        send(
            .ended(
                RequestLife.Ending(
                    token: launch.token, outcome: outcome, stopReason: stopReason, served: launch.served,
                    history: RequestLife.History(lastServed: lastServed, failedInARow: failedInARow, backoffBase: 5),
                    newToken: "t\(tokens)")))
        if outcome.isResult { checkLaunchResult(launch, stopReason, before) }
        if !outcome.isResult, let occurrence = launch.served, occurrence <= now, life.occurrence ?? .distantFuture > now {
            found("an occurrence without a result is not repeated")
        }
    }

    private mutating func checkLaunchResult(_ launch: Launch, _ stopReason: StopReason?, _ before: RequestLife) {
        if let occurrence = launch.served { recordServed(occurrence) }
        guard terms.recurrence == nil else { return }
        // The launch was stopped because its condition was lost, and the handler has not submitted the request again.
        if stopReason == .conditionLost, launch.token == before.token { return }
        owed -= 1
        if (owed == 0) != (life.phase == .removed) { found("\(owed) requests are owed, and the life is \(life.phase)") }
    }

    private mutating func recordServed(_ occurrence: Date) {
        if let other = served[occurrence], occurrence.timeIntervalSince(other.earliest) <= WallClockRule.servedAhead,
            other.lead - other.leastLead <= WallClockRule.servedAhead
        {
            found("\(occurrence) was served twice")
        }
        served[occurrence] = Served(earliest: now, lead: lead, leastLead: lead)
    }

    private mutating func send(_ event: RequestLife.Event) {
        let before = life
        let commands = life.handle(event, now: now, in: zone)
        if commands.isEmpty, life == before { return }
        if isTold { story.append("\(now): \(event) → \(commands), for \(String(describing: life.occurrence))") }
        carryOut(commands, isSimulated: event == .launched(isSimulated: true))
        if (live != nil) != (life.phase.isServing) { found("a launch runs: \(live != nil), and the life is \(life.phase)") }
        if case .ended = event { return }
        let isSkipped = commands.contains { if case .skip = $0 { true } else { false } }
        if !isSkipped, let due = before.occurrence, due <= now, life.occurrence != due { found("a due occurrence was dropped") }
    }

    private mutating func carryOut(_ commands: [RequestLife.Command], isSimulated: Bool = false) {
        for command in commands {
            switch command {
            case .begin(let generation, _, let served):
                if live != nil { found("two launches of one request") }
                if !isSimulated, life.dueAt > now { found("launched before its date") }
                live = Launch(token: life.token, generation: generation, served: served, startedAt: now)
            case .skip(let occurrence):
                recordServed(occurrence)
                history.append(
                    Launch(
                        token: "", generation: 1, served: occurrence, startedAt: now, outcome: .skipped))
            case .planned:
                if life.occurrence ?? .distantPast <= now { found("planned for the past") }
            case .remove: break
            }
        }
    }

    // MARK: The ledger

    private var lastServed: Date? {
        history.compactMap { $0.outcome?.isResult == true || $0.outcome == .skipped ? $0.served : nil }
            .filter { WallClockRule.counts(served: $0, now: now) }.max()
    }

    private var failedInARow: Int {
        history.filter { $0.outcome != .skipped }.reversed()
            .prefix { $0.outcome?.isBlamedOnApp == true || $0.outcome == .neverBegan }
            .filter { $0.outcome?.isBlamedOnApp == true }.count
    }

    /// Corrects dates that were written while the clock was ahead.
    private mutating func mend(beyond limit: Date) {
        func mended(_ launch: Launch) -> Launch {
            var launch = launch
            guard launch.startedAt > limit else { return launch }
            if launch.served ?? .distantPast > limit { launch.served = nil }
            launch.startedAt = now
            return launch
        }
        history = history.map(mended)
        live = live.map(mended)
    }

    // MARK: The end

    /// Runs three days without disturbances. At each noon of the clock, one launch must run within a minute.
    private mutating func calmDown() {
        if !hasAgent {
            hasAgent = true
            look()
        }
        turn()
        if live != nil { endLaunch(.completed) }
        let known = Set(history.compactMap { $0.outcome?.isResult == true ? $0.served : nil })
        let (since, first) = (now, history.count)
        for _ in 0..<10 where life.phase != .removed {
            if live != nil { endLaunch(.completed) }
            guard life.phase == .pending else { break }
            if terms.recurrence != nil, life.dueAt > since + 3 * 86_400 { break }
            pass(max(0, life.dueAt.timeIntervalSince(now)))
            turn()
        }
        if life.phase.isServing { found("it is launched again and again") }
        guard let rule = terms.recurrence else {
            if life.phase != .removed || owed != 0 { found("\(owed) accepted requests have no launch with a result") }
            return
        }
        // The delay after failures is at most six hours. If a noon falls into this delay, one launch serves this noon and the
        // noon before.
        var noon = rule.next(after: since + RelaunchBackoff.longest, in: zone)
        while noon < since + 3 * 86_400 - 3_600 {
            let results = history[first...].filter { $0.served == noon && $0.outcome == .completed }
            let isServedBefore = known.contains { $0 >= noon }
            if !isServedBefore, results.count != 1 { found("\(noon) was served \(results.count) times") }
            if !isServedBefore, let start = results.first?.startedAt, start > noon + 60 {
                found("\(noon) was served at \(start)")
            }
            noon = rule.next(after: noon, in: zone)
        }
    }
}

extension RequestLife.Phase {
    fileprivate var isServing: Bool {
        switch self {
        case .serving: true
        case .pending, .removed: false
        }
    }
}
