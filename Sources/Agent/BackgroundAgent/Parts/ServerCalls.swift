import BackgroundNotices
import Foundation

/// The calls to a notification server and the server's replies. This type decides when a notification can be sent to the server.
/// ``NotificationPlanner`` uses this type.
///
/// Times are in seconds of the clock that stops during sleep, so that a wait does not become longer if the clock is set.
struct ServerCalls {
    /// The number of seconds for which the agent waits for the server's reply to a notification before it withdraws the
    /// notification or exits.
    private static let patience: Double = 5
    /// After this number of seconds, newer content is sent even if an earlier call to the server has not ended. Every call ends
    /// in less time.
    private static let longestCall: Double = 60
    /// After this number of seconds, newer content is shown even if the server has not replied to the old content. The server may
    /// never reply.
    private static let longestFreeze: Double = 900
    /// The number of seconds after which a silent server is queried. The query is repeated after the same number of seconds.
    private static let longestSilence: Double = 60
    /// The number of seconds that a server may need after a freeze to handle the notifications that it received before the
    /// freeze.
    private static let longestDelay: Double = 30

    /// The notifications that were passed to the presenter and have no reply yet, with the times of the calls.
    private var beingShown: [String: Double] = [:]
    /// The revision of the content that was last passed to the presenter. The entry is removed when the presenter confirms the
    /// content.
    private var given: [String: Int] = [:]
    /// The notifications that the server refused, and the notifications that could not be sent because no server was available.
    private var refused: [String: Refusal] = [:]
    /// The notifications to which the server has not replied. If the server froze, it shows these notifications when it
    /// continues. A second call would then show a notification twice.
    private var unanswered: [String: Unanswered] = [:]

    private struct Unanswered {
        let since: Double
        /// The time at which the server replied to a later call. The reply to this call arrives soon after that time, or it was
        /// lost.
        var laterAnswer: Double?
        /// The time of the last query that checked whether the server responds.
        var queriedAt: Double?

        /// Newer content of the notification waits for the reply to this call, but not longer than until this time.
        var end: Double { laterAnswer.map { $0 + ServerCalls.longestDelay } ?? since + ServerCalls.longestFreeze }
    }

    private struct Refusal {
        /// The revision of the refused content. Content with another revision is tried immediately.
        var revision: Int
        /// The number of consecutive refusals by the server.
        var count: Int
        /// The time at which the notification is sent again. `nil` if a change is necessary before the next try.
        var until: Double?

        /// Returns the pause before the next try, in seconds. A server that limits the rate accepts notifications again within
        /// seconds. Refusals for other reasons may be permanent.
        static func pause(after count: Int) -> Double { min(5 * pow(2, Double(count - 1)), 900) }
    }

    /// The notifications that the server has to remove, with the times of the calls. The entries are removed when the server
    /// confirms.
    private var beingWithdrawn: [String: Double] = [:]

    /// `true` if the agent waits for a reply of the server.
    var isShowing: Bool { !beingShown.isEmpty || !beingWithdrawn.isEmpty }

    /// The notifications that the server received but did not confirm.
    var open: Set<String> { Set(unanswered.keys) }

    /// Returns the date until which the agent waits for replies of the server. Returns `nil` if the agent waits for no reply.
    func answersDue(_ moment: ClockReading) -> Date? {
        let last = max(beingShown.values.max() ?? -.infinity, beingWithdrawn.values.max() ?? -.infinity) + Self.patience
        return last > moment.awake ? moment.date(atAwake: last) : nil
    }

    /// Retries refused notifications, because a change may have removed the cause of the refusal.
    mutating func tryAgain() { refused = [:] }

    /// Forgets the calls without a reply, because the server that received these calls does not run any more.
    mutating func loseServer() { (unanswered, beingWithdrawn) = ([:], [:]) }

    // MARK: Calls

    /// The time at which a notification can be sent to the server.
    enum Turn: Equatable {
        case now
        /// The notification can be sent at this time, in seconds of the clock that stops during sleep.
        case at(Double)
        /// The notification can be sent only after a change, for example after another server started.
        case later
    }

    func turn(of identifier: String, revision: Int, _ moment: ClockReading) -> Turn {
        // Only one call per notification runs at a time. The reply to the earlier call contains the number of the content to
        // replace, and without this number, the server would show two notifications.
        let call = beingShown[identifier].map { $0 + Self.longestCall }
        if let end = call ?? unanswered[identifier]?.end, moment.awake < end { return .at(end) }
        guard let refusal = refused[identifier], refusal.revision == revision else { return .now }
        guard let until = refusal.until else { return .later }
        return until <= moment.awake ? .now : .at(until)
    }

    /// Returns `true` if the server was asked to show the notification and has not replied.
    func isOpen(_ identifier: String) -> Bool { beingShown[identifier] != nil || unanswered[identifier] != nil }

    /// Returns the time until which the agent waits for the number of a notification, in seconds of the clock that stops during
    /// sleep. Returns `nil` if no call is pending.
    func numberDue(of identifier: String, _ moment: ClockReading) -> Double? {
        beingShown[identifier].map { $0 + Self.patience }.flatMap { moment.awake < $0 ? $0 : nil }
    }

    mutating func begin(_ identifier: String, revision: Int, _ moment: ClockReading) {
        beingShown[identifier] = moment.awake
        given[identifier] = revision
    }

    mutating func beginWithdrawal(_ identifier: String, _ moment: ClockReading) { beingWithdrawn[identifier] = moment.awake }

    // MARK: Replies

    mutating func recordWithdrawn(_ identifier: String) { beingWithdrawn[identifier] = nil }

    /// - Returns: the revision of the content that was last passed to the presenter.
    mutating func handlePresented(_ identifier: String, _ moment: ClockReading) -> Int? {
        if let begun = beingShown.removeValue(forKey: identifier) { recordServerReply(toCallOf: begun, moment) }
        refused[identifier] = nil
        unanswered[identifier] = nil
        return given.removeValue(forKey: identifier)
    }

    /// The condition for the next try after a failure.
    private enum Next { case whenSomethingChanges, afterPause, whenAnswered }

    /// The description of a failure to show a notification.
    struct Trouble {
        let text: String
        /// `true` if the server received the notification and may still show it.
        let isAnswerOpen: Bool
    }

    /// - Parameter revision: the current revision, or `nil` if the notification must not be shown any more.
    mutating func handleShowFailure(
        _ identifier: String, _ failure: PresenterFailure, isKnown: Bool, revision: Int?, _ moment: ClockReading
    ) -> Trouble {
        beingShown[identifier] = nil
        unanswered[identifier] = nil
        let (text, next): (String, Next) =
            switch failure {
            case .noSessionBus(let why): ("no session bus is available: \(why)", .whenSomethingChanges)
            case .busUnreachable(let why): ("no session bus is available: \(why)", .afterPause)
            case .noServer(let why): ("no notification server is available: \(why)", .whenSomethingChanges)
            case .refused(let why): ("the notification server refused: \(why)", .afterPause)
            case .unresponsive(let why): ("the notification server does not respond: \(why)", .afterPause)
            case .unanswered(let why):
                ("the notification server received the notification but does not respond: \(why)", .whenAnswered)
            }
        // The call still counts as unanswered if the app changed the content, because the server received the earlier content.
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

    /// Records that the server replied to a call. `begun` is the time of the call in seconds of the clock that stops during
    /// sleep.
    mutating func recordServerReply(toCallOf begun: Double, _ moment: ClockReading) {
        for (identifier, call) in unanswered where call.since <= begun && call.laterAnswer == nil {
            unanswered[identifier]?.laterAnswer = moment.awake
        }
    }

    // MARK: Silence

    /// Finds lost notifications: the server replied to later calls, but has not replied to these notifications for too long.
    ///
    /// - Returns: the identifiers of the lost notifications.
    mutating func removeLost(_ pass: inout Pass) -> [String] {
        // A server that cannot be reached must not block the agent. The ledger stores which notifications have to be removed from
        // the screen.
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

    /// Queries a silent server. If the server lost the only call, the agent would otherwise never detect that the server
    /// responds.
    private mutating func askAboutSilent(_ pass: inout Pass) {
        var isAsked = false
        for (identifier, call) in unanswered where call.laterAnswer == nil {
            let due = (call.queriedAt ?? call.since) + Self.longestSilence
            if due <= pass.moment.awake {
                unanswered[identifier]?.queriedAt = pass.moment.awake
                isAsked = true
            }
            pass.wake(at: pass.moment.date(atAwake: max(due, pass.moment.awake + Self.longestSilence)))
        }
        if isAsked { pass.perform(.askServer) }
    }
}
