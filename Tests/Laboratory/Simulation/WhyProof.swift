import BackgroundLedger
import BackgroundScheduling
import BackgroundTasksTesting
import Foundation

/// Proves the causes that `why` reports for a request that did not run, by removing them.
///
/// A seed is played several times up to the same moment, and then continued in different ways. If no cause is removed, the
/// request does not run. If all named causes are removed, the request runs. If all causes except one are removed, the request
/// does not run.
package struct WhyProof {
    package struct Tally: Sendable {
        package var days = 0.0
        /// The number of requests that were pending and did not run at the moment of the question.
        package var questions = 0
        /// The number of times that each cause was named.
        package var causes: [String: Int] = [:]
        /// The number of requests with more than one cause.
        package var joined = 0

        package static func + (one: Tally, other: Tally) -> Tally {
            Tally(
                days: one.days + other.days, questions: one.questions + other.questions,
                causes: one.causes.merging(other.causes, uniquingKeysWith: +), joined: one.joined + other.joined)
        }
    }

    /// The number of seconds within which a request without a cause runs. Other due requests run first.
    private static let turns = 20.0
    /// The minimum number of seconds for which unchanged requests are observed. The time is longer if a cause ends later by
    /// itself.
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
            // If all causes end by time alone, the unchanged run is the proof.
            if question.endOfTime == nil { try removeAll(question) }
            if question.causes.count > 1 { for kept in question.causes { try removeAllBut(kept, question) } }
        }
        try leave(questions, in: life)
    }

    private mutating func found(_ what: String, _ question: Question) {
        broken.append("\(question.identifier), \(question.words): \(what)")
    }

    // MARK: The three continuations

    /// Removes no cause. A request does not run until all its causes have ended by time alone, and then the request runs.
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
            // The launch of the request ends by itself.
            if question.causes.contains(where: { $0.name == .notRunning }) { continue }
            guard let due = question.endOfTime else {
                if let start { found("ran at \(start), and nothing was taken away", question) }
                continue
            }
            if let start, start < due.addingTimeInterval(-0.01) { found("ran at \(start), before its time, \(due)", question) }
            if start == nil { found("did not run when its time had come", question) }
        }
    }

    /// Removes exactly the named causes. The request has to run.
    private mutating func removeAll(_ question: Question) throws {
        let life = try Life(seed)
        for cause in question.causes where cause.metAt == nil { try life.remove(cause, of: question) }
        let wait = max(0, question.endOfTime(of: question.causes).timeIntervalSince(life.now))
        guard try life.runs(question, within: wait + Self.turns) else {
            return found("did not run without what was named", question)
        }
    }

    /// Removes all named causes except one. The request must not run.
    private mutating func removeAllBut(_ kept: ConditionVerdict, _ question: Question) throws {
        let life = try Life(seed)
        let removed = question.causes.filter { $0 != kept }
        for cause in removed where cause.metAt == nil { try life.remove(cause, of: question) }
        let end = question.endOfTime(of: removed).addingTimeInterval(Self.turns)
        // A cause that ends by time alone is present until that time.
        let until = kept.metAt.map { min($0.addingTimeInterval(-0.01), end) } ?? end
        // A running launch of the request ends by itself.
        guard kept.name != .notRunning, until > life.now else { return }
        if try life.runs(question, within: until.timeIntervalSince(life.now)) {
            found("ran though \(kept.name.rawValue) was left", question)
        }
    }
}

/// A request that did not run, with the causes.
private struct Question {
    let identifier: String
    let causes: [ConditionVerdict]

    var words: String { causes.map { "\($0.name.rawValue) (\($0.detail))" }.joined(separator: " and ") }

    /// The time when all causes have ended by time alone; `nil` if a cause does not end by time.
    var endOfTime: Date? { causes.allSatisfy { $0.metAt != nil } ? endOfTime(of: causes) : nil }

    func endOfTime(of causes: [ConditionVerdict]) -> Date { causes.compactMap(\.metAt).max() ?? .distantPast }
}

/// The run of a seed up to the moment of its question.
private final class Life {
    let simulation: Simulation
    let days: Double
    private let latest: Int64
    /// The tokens of the requests by identifier. Each run has different tokens.
    private let tokens: [String: String]

    init(_ seed: UInt64) throws {
        simulation = try Simulation(seed: seed)
        days = try simulation.liveToAQuestion()
        // The command `why` starts an agent if none is running, and waits for the first pass of the agent.
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
            // Requests that run at this moment are not part of the question.
            let running = try Set(transaction.liveLaunches().compactMap(\.requestToken))
            return try transaction.requests().filter { !running.contains($0.token) }.map { request in
                Question(
                    identifier: request.identifier,
                    causes: explanation.verdicts(request).filter { !$0.met })
            }
        }
    }

    /// Returns the start of the first launch of this request since the question.
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

    /// Removes a cause, unless the cause ends by time.
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
