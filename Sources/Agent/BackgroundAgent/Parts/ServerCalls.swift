import BackgroundNotices
import Foundation

/// What a notification server was given to show and what it answered: which notification may be given to it, and when. A part of ``Screen``.
///
/// Times are seconds awake: a clock that is set lengthens no wait.
struct ServerCalls {
    /// Seconds that a notification which is taken back, or an agent that leaves, waits for the server's answer to a showing.
    private static let patience: Double = 5
    /// Seconds after which an answer is not waited for any more by newer content: every call to a server ends before.
    private static let longestCall: Double = 60
    /// Seconds after which newer content is shown although the server still has the old one and does not answer: it may never do so.
    private static let longestFreeze: Double = 900
    /// Seconds after which a server that has not answered is asked whether it answers anything, and between two such questions.
    private static let longestSilence: Double = 60
    /// Seconds that a server which goes on may need for what it was given while it did not.
    private static let longestDelay: Double = 30

    /// Handed to the presenter, which has not answered, and since when.
    private var beingShown: [String: Double] = [:]
    /// Which content the presenter was given last; until it says that it stands there.
    private var given: [String: Int] = [:]
    /// What a server refused, or found none.
    private var refused: [String: Refusal] = [:]
    /// Given to a server that did not answer. It shows them when it goes on: asked again, it would show them twice.
    private var unanswered: [String: Unanswered] = [:]

    private struct Unanswered {
        let since: Double
        /// It has answered a later call: what it was given before is answered soon, or was lost.
        var laterAnswer: Double?
        /// When it was asked last whether it answers anything.
        var asked: Double?

        /// Until when newer content waits for the answer.
        var end: Double { laterAnswer.map { $0 + ServerCalls.longestDelay } ?? since + ServerCalls.longestFreeze }
    }

    private struct Refusal {
        /// Other content is tried at once.
        var revision: Int
        /// How often in a row.
        var count: Int
        /// When it is tried again though nothing changed; `nil`: never.
        var until: Double?

        /// Seconds: a server that counts notifications forgets within seconds; one that cannot show this one will never do so.
        static func pause(after count: Int) -> Double { min(5 * pow(2, Double(count - 1)), 900) }
    }

    /// Which it was told to take off, and when; until it has heard that.
    private var beingWithdrawn: [String: Double] = [:]

    /// Some answer is missing.
    var isShowing: Bool { !beingShown.isEmpty || !beingWithdrawn.isEmpty }

    /// The server has these, and has not said that it shows them.
    var open: Set<String> { Set(unanswered.keys) }

    /// Until when the answers that are missing are waited for; `nil`: none is.
    func answersDue(_ moment: Moment) -> Date? {
        let last = max(beingShown.values.max() ?? -.infinity, beingWithdrawn.values.max() ?? -.infinity) + Self.patience
        return last > moment.awake ? moment.date(atAwake: last) : nil
    }

    /// Something changed that may help: what could not be shown is tried again.
    mutating func tryAgain() { refused = [:] }

    /// The server is gone, and with it what it has not answered.
    mutating func loseServer() { (unanswered, beingWithdrawn) = ([:], [:]) }

    // MARK: Calls

    /// When a notification may be given to the server.
    enum Turn: Equatable {
        case now
        /// In seconds awake.
        case at(Double)
        /// When something changes.
        case later
    }

    func turn(of identifier: String, revision: Int, _ moment: Moment) -> Turn {
        // One call at a time: the answer to the last brings the number that this content replaces. Without it both would stand there.
        let call = beingShown[identifier].map { $0 + Self.longestCall }
        if let end = call ?? unanswered[identifier]?.end, moment.awake < end { return .at(end) }
        guard let refusal = refused[identifier], refusal.revision == revision else { return .now }
        guard let until = refusal.until else { return .later }
        return until <= moment.awake ? .now : .at(until)
    }

    /// The server was asked to show it, and has not answered.
    func isOpen(_ identifier: String) -> Bool { beingShown[identifier] != nil || unanswered[identifier] != nil }

    /// Until when the number of what is being shown is waited for, in seconds awake; `nil`: nothing is on the way.
    func numberDue(of identifier: String, _ moment: Moment) -> Double? {
        beingShown[identifier].map { $0 + Self.patience }.flatMap { moment.awake < $0 ? $0 : nil }
    }

    mutating func begin(_ identifier: String, revision: Int, _ moment: Moment) {
        beingShown[identifier] = moment.awake
        given[identifier] = revision
    }

    mutating func beginWithdrawal(_ identifier: String, _ moment: Moment) { beingWithdrawn[identifier] = moment.awake }

    // MARK: Answers

    mutating func noteWithdrawn(_ identifier: String) { beingWithdrawn[identifier] = nil }

    /// - Returns: the revision that it was given last.
    mutating func notePresented(_ identifier: String, _ moment: Moment) -> Int? {
        if let begun = beingShown.removeValue(forKey: identifier) { noteAnswer(toCallOf: begun, moment) }
        refused[identifier] = nil
        unanswered[identifier] = nil
        return given.removeValue(forKey: identifier)
    }

    /// When one that was not shown is tried again.
    private enum Next { case whenSomethingChanges, afterPause, whenAnswered }

    /// What a failure means.
    struct Trouble {
        let text: String
        /// The server has it, and may show it yet.
        let isAnswerOpen: Bool
    }

    /// - Parameter revision: that it has now; `nil`: nobody wants it shown any more.
    mutating func noteFailure(
        _ identifier: String, _ failure: PresenterFailure, isKnown: Bool, revision: Int?, _ moment: Moment
    ) -> Trouble {
        beingShown[identifier] = nil
        unanswered[identifier] = nil
        let (text, next): (String, Next) =
            switch failure {
            case .noSessionBus(let why): ("no session bus: \(why)", .whenSomethingChanges)
            case .busUnreachable(let why): ("no session bus: \(why)", .afterPause)
            case .noServer(let why): ("no notification server: \(why)", .whenSomethingChanges)
            case .refused(let why): ("the notification server refused: \(why)", .afterPause)
            case .unresponsive(let why): ("the notification server does not answer: \(why)", .afterPause)
            case .unanswered(let why): ("the notification server has it and does not answer: \(why)", .whenAnswered)
            }
        // Whatever the app wants shown by now: the server has what it had then.
        if next == .whenAnswered, isKnown { unanswered[identifier] = Unanswered(since: moment.awake) }
        if let revision {
            switch next {
            case .whenAnswered: break
            case .whenSomethingChanges: refused[identifier] = Refusal(revision: revision, count: 0, until: nil)
            case .afterPause:
                let count = (refused[identifier]?.count ?? 0) + 1
                refused[identifier] = Refusal(
                    revision: revision, count: count, until: moment.awake + Refusal.pause(after: count))
            }
        }
        return Trouble(text: text, isAnswerOpen: next == .whenAnswered)
    }

    /// The server answers what it was asked after `begun`, in seconds awake.
    mutating func noteAnswer(toCallOf begun: Double, _ moment: Moment) {
        for (identifier, call) in unanswered where call.since <= begun && call.laterAnswer == nil {
            unanswered[identifier]?.laterAnswer = moment.awake
        }
    }

    // MARK: Silence

    /// - Returns: what a server that answers has not answered for so long that it is lost.
    mutating func takeLost(_ pass: inout Pass) -> [String] {
        // Whoever cannot be asked holds up nobody: what has to leave the screen stands in the ledger.
        beingWithdrawn = beingWithdrawn.filter { pass.moment.awake < $0.value + Self.patience }
        if let last = beingWithdrawn.values.max() { pass.wake(at: pass.moment.date(atAwake: last + Self.patience)) }
        askAboutSilent(&pass)
        var lost: [String] = []
        for (identifier, call) in unanswered where call.laterAnswer != nil {
            if call.end <= pass.moment.awake {
                unanswered[identifier] = nil
                lost.append(identifier)
            } else {
                pass.wake(at: pass.moment.date(atAwake: call.end))
            }
        }
        return lost
    }

    /// A server that lost one call and is asked nothing else would never be known to answer.
    private mutating func askAboutSilent(_ pass: inout Pass) {
        var isAsked = false
        for (identifier, call) in unanswered where call.laterAnswer == nil {
            let due = (call.asked ?? call.since) + Self.longestSilence
            if due <= pass.moment.awake {
                unanswered[identifier]?.asked = pass.moment.awake
                isAsked = true
            }
            pass.wake(at: pass.moment.date(atAwake: max(due, pass.moment.awake + Self.longestSilence)))
        }
        if isAsked { pass.perform(.askServer) }
    }
}
