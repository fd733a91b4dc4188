import BackgroundLedger
import BackgroundScheduling
import BackgroundTasksTesting
import Foundation

/// Proves the causes that `why` reports for a request that did not run.
///
/// A seed is simulated several times up to the same time. After this time, each run continues in a different way. If no cause is
/// removed, the request must not run. If all named causes are removed, the request must run. If all causes except one are
/// removed, the request must not run.
package struct WhyProof {
    package struct Tally: Sendable {
        package var days = 0.0
        /// The number of requests that were pending and did not run when `why` was run.
        package var questions = 0
        /// For each cause: the number of times that `why` named it.
        package var causes: [String: Int] = [:]
        /// The number of requests for which `why` named more than one cause.
        package var joined = 0

        package static func + (one: Tally, other: Tally) -> Tally {
            Tally(
                days: one.days + other.days, questions: one.questions + other.questions,
                causes: one.causes.merging(other.causes, uniquingKeysWith: +), joined: one.joined + other.joined)
        }
    }

    /// The number of seconds within which a request must run if no cause prevents the request from running. The time is necessary
    /// because other due requests run first.
    private static let turns = 20.0
    /// The minimum number of seconds for which unchanged requests are observed. If a cause ends later by itself, the requests are
    /// observed until that time.
    private static let patience = 3_600.0

    private let seed: UInt64
    private var tally = Tally()
    private var broken: [String] = []

    package init(seed: UInt64) { self.seed = seed }

    /// - Throws: ``Simulation/Failure``.
    package static func play(seed: UInt64) throws -> Tally {
        var proof = WhyProof(seed: seed)
        do { try proof.ask() } catch { proof.broken.append("\(error)") }
        guard proof.broken.isEmpty else {
            let story = (try? Life(seed).simulation.story) ?? []
            throw Simulation.Failure(seed: seed, broken: proof.broken, transcript: story)
        }
        return proof.tally
    }

    private mutating func ask() throws {
        let life = try Life(seed)
        tally.days = life.days
        let questions = try life.questions()
        for question in questions {
            tally.questions += 1
            for cause in question.causes { tally.causes[cause.name.rawValue, default: 0] += 1 }
            if question.causes.count > 1 { tally.joined += 1 }
            // If all causes end by time alone, the run without changes is already the proof.
            if question.endOfTime == nil { try removeAll(question) }
            if question.causes.count > 1 { for kept in question.causes { try removeAllBut(kept, question) } }
        }
        try leave(questions, in: life)
    }

    private mutating func found(_ what: String, _ question: Question) {
        broken.append("\(question.identifier), \(question.words): \(what)")
    }

    // MARK: The three continuations

    /// Removes no cause. A request must not run until all its causes have ended by time alone. After all causes have ended, the
    /// request must run.
    private mutating func leave(_ questions: [Question], in life: Life) throws {
        let began = life.now
        var begun: [String: Date] = [:]
        let latest = questions.compactMap(\.endOfTime).max() ?? began
        try life.simulation.machine.pass(max(Self.patience, latest.timeIntervalSince(began) + Self.turns)) {
            for question in questions where begun[question.identifier] == nil {
                begun[question.identifier] = try life.start(of: question)
            }
            return false
        }
        for question in questions {
            let start = begun[question.identifier]
            // A launch of the request is running, and ends by itself.
            if question.causes.contains(where: { $0.name == .notRunning }) { continue }
            guard let due = question.endOfTime else {
                if let start { found("ran at \(start), and nothing was taken away", question) }
                continue
            }
            if let start, start < due.addingTimeInterval(-0.01) { found("ran at \(start), before its time, \(due)", question) }
            if start == nil { found("did not run when its time had come", question) }
        }
    }

    /// Removes exactly the named causes. The request must run after its causes are removed.
    private mutating func removeAll(_ question: Question) throws {
        let life = try Life(seed)
        for cause in question.causes where cause.metAt == nil { try life.remove(cause, of: question) }
        let wait = max(0, question.endOfTime(of: question.causes).timeIntervalSince(life.now))
        guard try life.runs(question, within: wait + Self.turns) else {
            return found("did not run without what was named", question)
        }
    }

    /// Removes all named causes except one. The request must not run, because one cause remains.
    private mutating func removeAllBut(_ kept: ConditionVerdict, _ question: Question) throws {
        let life = try Life(seed)
        let removed = question.causes.filter { $0 != kept }
        for cause in removed where cause.metAt == nil { try life.remove(cause, of: question) }
        let end = question.endOfTime(of: removed).addingTimeInterval(Self.turns)
        // If a cause ends by time alone, the cause is present until its end time.
        let until = kept.metAt.map { min($0.addingTimeInterval(-0.01), end) } ?? end
        // If a launch of the request is running, it ends by itself.
        guard kept.name != .notRunning, until > life.now else { return }
        if try life.runs(question, within: until.timeIntervalSince(life.now)) {
            found("ran though \(kept.name.rawValue) was left", question)
        }
    }
}

/// A request that did not run, with the causes that `why` named.
private struct Question {
    let identifier: String
    let causes: [ConditionVerdict]

    var words: String { causes.map { "\($0.name.rawValue) (\($0.detail))" }.joined(separator: " and ") }

    /// The time when all causes have ended by time alone; `nil` if a cause does not end by time.
    var endOfTime: Date? { causes.allSatisfy { $0.metAt != nil } ? endOfTime(of: causes) : nil }

    func endOfTime(of causes: [ConditionVerdict]) -> Date { causes.compactMap(\.metAt).max() ?? .distantPast }
}

/// One run of a seed, up to the time when `why` is run.
private final class Life {
    let simulation: Simulation
    let days: Double
    private let latest: Int64
    /// The tokens of the requests by identifier. Each run of a seed has different tokens.
    private let tokens: [String: String]

    init(_ seed: UInt64) throws {
        simulation = try Simulation(seed: seed)
        days = try simulation.liveToAQuestion()
        // If no agent is running, the command `why` starts an agent, and waits for the first pass of this agent.
        if !simulation.machine.hasAgent { try simulation.machine.startAgent() }
        try simulation.machine.run()
        (latest, tokens) = try simulation.machine.ledger.read { transaction in
            let requests = try transaction.requests().map { ($0.identifier, $0.token) }
            return (try transaction.latestLaunch() ?? 0, Dictionary(uniqueKeysWithValues: requests))
        }
    }

    var now: Date { simulation.machine.clock.date }

    func questions() throws -> [Question] {
        try simulation.machine.ledger.read { transaction in
            let explanation = try Explanation(transaction, now: now)
            // Requests whose launch is running now are not examined.
            let running = try Set(transaction.liveLaunches().compactMap(\.requestToken))
            return try transaction.requests().filter { !running.contains($0.token) }.map { request in
                Question(
                    identifier: request.identifier,
                    causes: explanation.verdicts(request).filter { !$0.met })
            }
        }
    }

    /// Returns the start of the first launch of this request after `why` was run.
    func start(of question: Question) throws -> Date? {
        try simulation.machine.ledger.read { transaction in
            guard let last = try transaction.latestLaunch(), last > latest else { return nil }
            return try (latest + 1...last).lazy.compactMap { try transaction.launch($0) }
                .first { $0.requestToken == tokens[question.identifier] }?.startedAt
        }
    }

    func runs(_ question: Question, within seconds: Double) throws -> Bool {
        var hasRun = false
        try simulation.machine.pass(seconds) {
            hasRun = try start(of: question) != nil
            return hasRun
        }
        return hasRun
    }

    /// Removes a cause. A cause that ends by time is not removed.
    func remove(_ cause: ConditionVerdict, of question: Question) throws {
        switch cause.name {
        case .networkConnectivity: try simulation.machine.change { $0.isNetworkAvailable = true }
        case .externalPower: try simulation.machine.change { $0.isOnExternalPower = true }
        case .lowPowerMode: try simulation.machine.change { $0.isLowPowerMode = false }
        case .notRunning: try simulation.app.finishAll(of: question.identifier)
        case .earliestBeginDate, .networkAfterSleep, .backoff, .turn, .room, .systemWake: break
        }
    }
}
