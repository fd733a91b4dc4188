import ProcessSupport
import BackgroundLedger
import BackgroundNotices
import BackgroundScheduling
import Foundation

/// Notifications: shown when due and a server is there, replaced, withdrawn; their buttons become responses.
struct Screen {
    /// Seconds that a notification which is taken back, or an agent that leaves, waits for the server's answer to a showing.
    private static let patience: Double = 5

    /// Handed to the presenter, which has not answered, and since when, in seconds awake: a clock that is set lengthens no wait.
    private var beingShown: [String: Double] = [:]
    /// Which content the presenter was given last; until it says that it stands there.
    private var given: [String: Int] = [:]
    /// What a server refused, or found none.
    private var refused: [String: Refusal] = [:]
    /// Given to a server that did not answer. It shows them when it goes on: asked again, it would show them twice.
    private var unanswered: [String: Unanswered] = [:]
    private var progress = ProgressNotices()

    /// Seconds after which an answer is not waited for any more by newer content: every call to a server ends before.
    private static let longestCall: Double = 60
    /// Seconds after which newer content is shown although the server still has the old one and does not answer: it may never do so.
    private static let longestFreeze: Double = 900
    /// Seconds after which a server that has not answered is asked whether it answers anything, and between two such questions.
    private static let longestSilence: Double = 60
    /// Seconds that a server which goes on may need for what it was given while it did not.
    private static let longestDelay: Double = 30

    /// Times are seconds awake.
    private struct Unanswered {
        let since: Double
        /// It has answered a later call: what it was given before is answered soon, or was lost.
        var laterAnswer: Double?
        /// When it was asked last whether it answers anything.
        var asked: Double?

        /// Until when newer content waits for the answer.
        var end: Double { laterAnswer.map { $0 + Screen.longestDelay } ?? since + Screen.longestFreeze }
    }

    private struct Refusal {
        /// Other content is tried at once.
        var revision: Int
        /// How often in a row.
        var count: Int
        /// When it is tried again though nothing changed, in seconds awake; `nil`: never.
        var until: Double?

        /// Seconds: a server that counts notifications forgets within seconds; one that cannot show this one will never do so.
        static func pause(after count: Int) -> Double { min(5 * pow(2, Double(count - 1)), 900) }
    }

    /// Some answer of the presenter is missing.
    var isShowing: Bool { !beingShown.isEmpty }

    /// Until when the answers that are missing are waited for; `nil`: none is.
    func answersDue(_ moment: Moment) -> Date? {
        beingShown.values.max().map { $0 + Self.patience }.flatMap { $0 > moment.awake ? moment.date(atAwake: $0) : nil }
    }

    /// Something changed that may help: what could not be shown is tried again.
    mutating func tryAgain() { refused = [:] }

    // MARK: What is heard

    /// - Parameter launches: a pressed Cancel ends one of them.
    mutating func note(_ event: PresenterEvent, _ pass: inout Pass, _ launches: inout Launches) throws {
        if try progress.note(event, &pass, &launches) { return }
        switch event {
        case .presented(let identifier, let serverID): try notePresented(identifier, serverID, &pass)
        case .failed(let identifier, let failure): try noteFailure(identifier, failure, &pass)
        case .activated(let identifier, let serverID, let action, _): try notePress(identifier, serverID, action, &pass)
        case .unheard(let identifier, let serverID): try change(identifier, .buttonsLost(serverID: serverID), &pass)
        case .replied(let identifier, let serverID, let text): try noteReply(identifier, serverID, text, &pass)
        case .closed(let identifier, let serverID, let reason):
            if reason == .dismissed { try noteDismissal(identifier, serverID, &pass) }
            try change(identifier, .closed(serverID: serverID, now: pass.now), &pass)
        case .serverIs(let server):
            // Where the agent was not there when the last one left, as at a logout, nobody has told it.
            guard try pass.transaction.fact(.notificationServer) != server else { return }
            try noteLostServer(&pass)
            try pass.transaction.setFact(.notificationServer, server)
        case .serverAnswers: noteAnswer(toCallOf: pass.moment.awake, pass)
        case .serverAppeared: tryAgain()
        case .serverVanished, .busLost: try noteLostServer(&pass)
        }
    }

    /// Apple's name for a click on the notification itself: what the app will see.
    private static let defaultAction = "com.apple.UNNotificationDefaultActionIdentifier"
    private static let dismissAction = "com.apple.UNNotificationDismissActionIdentifier"

    private func notePress(_ identifier: String, _ serverID: UInt32, _ action: String, _ pass: inout Pass) throws {
        // Pressed once more on its way off the screen, it is answered already.
        guard let record = try pass.transaction.notification(identifier), record.serverID == serverID else { return }
        // What the agent itself said is no app's.
        if !identifier.hasPrefix(AgentNotice.prefix) {
            let name = try appName(of: action, record, pass)
            try pass.transaction.addResponse(name, to: record, now: pass.now)
            pass.log(.notificationPressed, (.notification, identifier), (.action, action))
        }
        try change(record, .pressed(serverID: serverID, now: pass.now), &pass)
    }

    /// What the app calls a server's key.
    private func appName(of action: String, _ record: NotificationRecord, _ pass: Pass) throws -> String {
        switch action {
        case "default": Self.defaultAction
        // Of a server that has the button and tells no text.
        case "inline-reply": try button(withFieldOf: record, pass)?.key ?? action
        default: action
        }
    }

    private func button(withFieldOf record: NotificationRecord, _ pass: Pass) throws -> NoticeAction? {
        try pass.transaction.actions(ofCategory: record.content.categoryIdentifier).first { $0.field != nil }
    }

    private func noteReply(_ identifier: String, _ serverID: UInt32, _ text: String, _ pass: inout Pass) throws {
        guard let record = try pass.transaction.notification(identifier), record.serverID == serverID,
            let button = try button(withFieldOf: record, pass)
        else { return }
        try pass.transaction.addResponse(button.key, to: record, userText: text, now: pass.now)
        pass.log(.notificationPressed, (.notification, identifier), (.action, button.key))
        try change(record, .pressed(serverID: serverID, now: pass.now), &pass)
    }

    /// Told only where the category asks for it, as on iOS.
    private func noteDismissal(_ identifier: String, _ serverID: UInt32, _ pass: inout Pass) throws {
        guard let record = try pass.transaction.notification(identifier), record.state == .delivered, record.serverID == serverID,
            try pass.transaction.tellsDismissal(ofCategory: record.content.categoryIdentifier)
        else { return }
        try pass.transaction.addResponse(Self.dismissAction, to: record, now: pass.now)
    }

    private mutating func notePresented(_ identifier: String, _ serverID: UInt32, _ pass: inout Pass) throws {
        if let begun = beingShown.removeValue(forKey: identifier) { noteAnswer(toCallOf: begun, pass) }
        refused[identifier] = nil
        unanswered[identifier] = nil
        KillPoint.reach(.noticePresented)
        try change(identifier, .presented(serverID: serverID, now: pass.now), &pass)
        if var record = try pass.transaction.notification(identifier) {
            let before = record
            record.takeInstant(now: pass.now, zone: pass.zone)
            // The app has changed its words since: they follow in its place.
            if let given = given.removeValue(forKey: identifier), given != record.revision { record.handle(.changed) }
            if record != before { try pass.transaction.save(record) }
            if let badge = record.content.badge { try pass.transaction.setFact(.badge, badge) }
        }
        try pass.transaction.setFact(.presenterTrouble, nil)
        pass.log(.notificationShown, (.notification, identifier))
    }

    /// When a notification that was not shown is tried again.
    private enum Next { case whenSomethingChanges, afterPause, whenAnswered }

    private mutating func noteFailure(_ identifier: String, _ failure: PresenterFailure, _ pass: inout Pass) throws {
        beingShown[identifier] = nil
        unanswered[identifier] = nil
        let (trouble, next): (String, Next) =
            switch failure {
            case .noSessionBus(let why): ("no session bus: \(why)", .whenSomethingChanges)
            case .busUnreachable(let why): ("no session bus: \(why)", .afterPause)
            case .noServer(let why): ("no notification server: \(why)", .whenSomethingChanges)
            case .refused(let why): ("the notification server refused: \(why)", .afterPause)
            case .unresponsive(let why): ("the notification server does not answer: \(why)", .afterPause)
            case .unanswered(let why): ("the notification server has it and does not answer: \(why)", .whenAnswered)
            }
        let record = try pass.transaction.notification(identifier)
        if let record { try change(record, .failed(why: trouble, isAnswerOpen: next == .whenAnswered), &pass) }
        // Whatever the app wants shown by now: the server has what it had then.
        if next == .whenAnswered, record != nil { unanswered[identifier] = Unanswered(since: pass.moment.awake) }
        if let record, record.state == .presenting {
            let revision = record.revision
            switch next {
            case .whenAnswered: break
            case .whenSomethingChanges: refused[identifier] = Refusal(revision: revision, count: 0, until: nil)
            case .afterPause:
                let count = (refused[identifier]?.count ?? 0) + 1
                let until = pass.moment.awake + Refusal.pause(after: count)
                refused[identifier] = Refusal(revision: revision, count: count, until: until)
            }
        }
        try pass.transaction.setFact(.presenterTrouble, trouble)
        pass.log(.notificationWaits, (.notification, identifier), (.reason, trouble))
    }

    private mutating func noteAnswer(toCallOf begun: Double, _ pass: Pass) {
        for (identifier, call) in unanswered where call.since <= begun && call.laterAnswer == nil {
            unanswered[identifier]?.laterAnswer = pass.moment.awake
        }
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

    /// What a server that answers has not answered for so long is lost: it is asked again.
    private mutating func takeBackLost(_ pass: inout Pass) throws {
        askAboutSilent(&pass)
        for (identifier, call) in unanswered where call.laterAnswer != nil {
            guard call.end <= pass.moment.awake else {
                pass.wake(at: pass.moment.date(atAwake: call.end))
                continue
            }
            unanswered[identifier] = nil
            try change(identifier, .answerLost, &pass)
        }
    }

    /// Numbers of a server that is gone mean nothing to the next one.
    private mutating func noteLostServer(_ pass: inout Pass) throws {
        let open = Set(unanswered.keys)
        unanswered = [:]
        // Docks of another session, or none yet.
        try pass.transaction.setFact(.badgeTold, nil)
        for record in try pass.transaction.notifications() {
            let event = NoticeLife.Event.serverLost(isAnswerOpen: open.contains(record.identifier))
            try change(record, event, &pass)
        }
    }

    private func change(_ identifier: String, _ event: NoticeLife.Event, _ pass: inout Pass) throws {
        guard let record = try pass.transaction.notification(identifier) else { return }
        try change(record, event, &pass)
    }

    private func change(_ before: NotificationRecord, _ event: NoticeLife.Event, _ pass: inout Pass) throws {
        var record = before
        let commands = record.handle(event)
        if record != before { try pass.transaction.save(record) }
        for command in commands {
            switch command {
            case .withdraw(let number):
                let server = try pass.transaction.fact(.notificationServer)
                pass.perform(.withdraw(identifier: record.identifier, serverID: number, of: server))
            }
        }
    }

    // MARK: What follows

    /// Launches ended: the progress of continued processing goes off the screen.
    mutating func note(ended launches: [LaunchRecord], _ pass: inout Pass) throws {
        for launch in launches where launch.kind == .continuedProcessing { try progress.withdraw(launch, &pass) }
    }

    mutating func plan(_ pass: inout Pass, isQuitting: Bool) throws {
        try takeBackLost(&pass)
        let app = try pass.transaction.fact(.app)
        for record in try pass.transaction.notificationsToHandle() {
            if record.state == .withdrawing { try withdraw(record, &pass) }
            if isQuitting { continue }
            let record = try scheduled(record, &pass)
            if record.state == .pending { try show(record, app, &pass) }
        }
        if !isQuitting { try progress.plan(&pass, app) }
        try planBadge(&pass)
    }

    /// As its trigger says now: one that repeats waits again when its instant has come.
    private func scheduled(_ record: NotificationRecord, _ pass: inout Pass) throws -> NotificationRecord {
        guard let schedule = record.schedule, schedule.next != nil else { return record }
        var changed = record
        changed.change(schedule: schedule.read(now: pass.now, zone: pass.zone))
        if !record.life.isUntold, let next = changed.schedule?.next {
            // Its next showing; what stands there until then stays, and what it stands behind is answered first.
            if next > pass.now {
                pass.wake(at: next)
            } else if record.state != .presenting, record.state != .withdrawing {
                changed.handle(.added)
                changed.change(schedule: changed.schedule ?? schedule)
            }
        }
        if changed != record { try pass.transaction.save(changed) }
        return changed
    }

    private mutating func show(_ record: NotificationRecord, _ app: AppRecord?, _ pass: inout Pass) throws {
        // One call at a time: the answer to the last brings the number that this content replaces. Without it both would stand there.
        let call = beingShown[record.identifier].map { $0 + Self.longestCall }
        if let end = call ?? unanswered[record.identifier]?.end, pass.moment.awake < end {
            return pass.wake(at: pass.moment.date(atAwake: end))
        }
        if let refusal = refused[record.identifier], refusal.revision == record.revision {
            guard let until = refusal.until else { return }
            guard until <= pass.moment.awake else { return pass.wake(at: pass.moment.date(atAwake: until)) }
        }
        let verdict = NoticeTiming.verdict(
            dueAt: record.dueAt, isEnabled: pass.settings.notificationsEnabled,
            quietHours: QuietHours(parsing: pass.settings.quietHours), now: pass.now, zone: pass.zone)
        switch verdict {
        case .silenced: return
        case .wait(let until): pass.wake(at: until)
        case .show:
            try change(record, .handedOver, &pass)
            beingShown[record.identifier] = pass.moment.awake
            given[record.identifier] = record.revision
            let server = try pass.transaction.fact(.notificationServer)
            pass.perform(.present(try notice(record, app, pass), replacing: record.serverID, of: server))
        }
    }

    private func planBadge(_ pass: inout Pass) throws {
        guard try pass.transaction.isBadgeUntold() else { return }
        let wanted = try pass.transaction.fact(.badge) ?? 0
        try pass.transaction.setFact(.badgeTold, wanted)
        pass.perform(.showBadge(wanted))
    }

    private func withdraw(_ record: NotificationRecord, _ pass: inout Pass) throws {
        if record.serverID == nil, let until = beingShown[record.identifier].map({ $0 + Self.patience }),
            pass.moment.awake < until
        {
            // Its number is on the way: without it there is nothing to take back, and a moment later it stands there.
            return pass.wake(at: pass.moment.date(atAwake: until))
        }
        try change(record, .takenOff(now: pass.now), &pass)
    }

    private func notice(_ record: NotificationRecord, _ app: AppRecord?, _ pass: Pass) throws -> Notice {
        let content = record.content
        let appIdentifier = pass.directories.appIdentifier
        let actions = try pass.transaction.actions(ofCategory: content.categoryIdentifier)
        let urgency: NoticeUrgency =
            switch content.interruptionLevel {
            case ..<1: .low
            case 3...: .critical
            default: .normal
            }
        var notice = Notice(
            identifier: record.identifier, appName: app?.displayName ?? appIdentifier, desktopEntry: appIdentifier,
            iconName: appIdentifier, title: content.title,
            body: [content.subtitle, content.body].filter { !$0.isEmpty }.joined(separator: "\n"),
            category: nil, urgency: urgency, actions: [NoticeAction(key: "default", label: "Open")] + actions,
            soundName: content.sound, isPersistent: content.interruptionLevel == 2)
        notice.isQuiet = record.life.deliveredAt != nil
        notice.picture = content.attachments?.first(where: \.isPicture).flatMap { attachment in
            // A row may come from anywhere.
            guard TransferRecord.isPlainName(attachment.file) else { return nil }
            return pass.directories.spool.appendingPathComponent(attachment.file).path
        }
        return notice
    }
}
