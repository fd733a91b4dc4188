import ProcessSupport
import BackgroundLedger
import BackgroundNotices
import BackgroundScheduling
import Foundation

/// The part of the agent for notifications. This part shows due notifications if a server is running. This part also replaces and
/// withdraws notifications, and stores pressed buttons as responses.
struct NotificationPlanner {
    private var calls = ServerCalls()
    private var summaries = Summaries()
    private var progress = ProgressNotices()
    /// `true` after unreadable rows of an earlier version of the agent were removed.
    private var hasCleaned = false

    /// `true` while the agent waits for a reply of the notification server.
    var isShowing: Bool { calls.isShowing }

    /// Returns the date until which the agent waits for replies. Returns `nil` if the agent waits for no reply.
    func answersDue(_ moment: ClockReading) -> Date? { calls.answersDue(moment) }

    /// Tries again to show notifications that could not be shown, because a change may have removed the cause.
    mutating func tryAgain() { calls.tryAgain() }

    // MARK: Events

    /// - Parameter launches: the running launches. If the user presses Cancel in a progress notification, a launch is stopped.
    mutating func handle(_ event: PresenterEvent, _ pass: inout Pass, _ launches: inout Launches) throws {
        if try progress.handle(event, &pass, &launches) { return }
        switch event {
        case .presented(let identifier, let serverID): try handlePresented(identifier, serverID, &pass)
        case .failed(let identifier, let failure): try handleShowFailure(identifier, failure, &pass)
        case .activated(let identifier, let serverID, let action, let token):
            try handlePress(identifier, serverID, action, token, &pass)
        case .unheard(let identifier, let serverID): try change(identifier, .buttonsLost(serverID: serverID), &pass)
        case .replied(let identifier, let serverID, let text): try handleReply(identifier, serverID, text, &pass)
        case .closed(let identifier, let serverID, let reason): try handleClosed(identifier, serverID, reason, &pass)
        case .serverIs(let server):
            // If no agent ran when the previous server ended, for example at a logout, no event reported the end of this server.
            guard try pass.transaction.fact(.notificationServer) != server else { return }
            try handleServerLoss(&pass)
            try pass.transaction.setFact(.notificationServer, server)
        case .serverHasButtons(let advertised, let label):
            let areDrawn = try pass.transaction.fact(.serversWithoutButtons)?.contains(label) != true
            try pass.transaction.setFact(.serverHasButtons, advertised && areDrawn)
        case .doNotDisturb(let isOn):
            let since = try pass.transaction.fact(.doNotDisturbSince)
            if isOn != (since != nil) { try pass.transaction.setFact(.doNotDisturbSince, isOn ? pass.now : nil) }
            // Hidden notifications are also shown if only an earlier agent recorded that do-not-disturb was on.
            if !isOn { try showHidden(&pass) }
        case .serverAnswers: calls.recordServerReply(toCallOf: pass.moment.awake, pass.moment)
        case .withdrawn(let identifier, let serverID):
            calls.recordWithdrawn(identifier)
            try change(identifier, .withdrawn(serverID: serverID), &pass)
        case .serverAppeared:
            tryAgain()
            try withdrawAgain(&pass)
        case .serverVanished, .busLost: try handleServerLoss(&pass)
        }
    }

    /// Apple's name for a click on the body of the notification. The app receives this name.
    private static let defaultAction = "com.apple.UNNotificationDefaultActionIdentifier"
    private static let dismissAction = "com.apple.UNNotificationDismissActionIdentifier"

    private mutating func handlePress(
        _ identifier: String, _ serverID: UInt32, _ action: String, _ token: String?, _ pass: inout Pass
    ) throws {
        // If the user presses the notification a second time while it leaves the screen, the second press is ignored.
        guard let record = try pass.transaction.notification(identifier), record.life.isPressable(as: serverID) else { return }
        // The notifications of the agent do not belong to an app.
        if Summaries.isSummary(identifier) {
            try summaries.handleSummaryPress(identifier, &pass)
        } else if !record.isAgents {
            let name = try appName(of: action, record, pass)
            try pass.transaction.addResponse(name, to: record, activationToken: token, now: pass.now)
            pass.log(.notificationPressed, (.notification, identifier), (.action, action))
        }
        try change(record, .pressed(serverID: serverID, now: pass.now), &pass)
    }

    /// Converts the server's key of an action to the name that the app uses for this action.
    private func appName(of action: String, _ record: NotificationRecord, _ pass: Pass) throws -> String {
        switch action {
        case "default": Self.defaultAction
        // Some servers draw the button of a text field but do not send the text.
        case "inline-reply": try button(withFieldOf: record, pass)?.key ?? action
        default: action
        }
    }

    private func button(withFieldOf record: NotificationRecord, _ pass: Pass) throws -> NoticeAction? {
        try pass.transaction.actions(ofCategory: record.content.categoryIdentifier).first { $0.field != nil }
    }

    private mutating func handleReply(_ identifier: String, _ serverID: UInt32, _ text: String, _ pass: inout Pass) throws {
        guard let record = try pass.transaction.notification(identifier), record.life.isPressable(as: serverID),
            let button = try button(withFieldOf: record, pass)
        else { return }
        try pass.transaction.addResponse(button.key, to: record, userText: text, now: pass.now)
        pass.log(.notificationPressed, (.notification, identifier), (.action, button.key))
        try change(record, .pressed(serverID: serverID, now: pass.now), &pass)
    }

    /// Reports to the app that the user dismissed the notification, if the category requires this. iOS has the same rule.
    private func reportDismissal(_ identifier: String, _ serverID: UInt32, _ pass: inout Pass) throws {
        // New content may be waiting while the old content is on the screen.
        guard let record = try pass.transaction.notification(identifier), record.serverID == serverID,
            record.state == .delivered || record.state == .pending,
            try pass.transaction.reportsDismissal(ofCategory: record.content.categoryIdentifier)
        else { return }
        try pass.transaction.addResponse(Self.dismissAction, to: record, now: pass.now)
    }

    private mutating func handleClosed(_ identifier: String, _ serverID: UInt32, _ reason: NoticeCloseReason, _ pass: inout Pass)
        throws
    {
        if reason == .dismissed { try reportDismissal(identifier, serverID, &pass) }
        let event: NoticeLife.Event =
            reason == .expired ? .expired(serverID: serverID, now: pass.now) : .closed(serverID: serverID, now: pass.now)
        try change(identifier, event, &pass)
        guard Summaries.isSummary(identifier), let record = try pass.transaction.notification(identifier) else { return }
        switch record.state {
        case .closed: try summaries.handleSummaryRemoval(identifier, isSeen: true, &pass)
        case .expired: try summaries.handleSummaryRemoval(identifier, isSeen: false, &pass)
        case .pending, .presenting, .delivered, .gathered, .over, .withdrawing, .withdrawn: break
        }
    }

    private mutating func handlePresented(_ identifier: String, _ serverID: UInt32, _ pass: inout Pass) throws {
        let given = calls.handlePresented(identifier, pass.moment)
        KillPoint.reach(.noticePresented)
        let hiddenBy = try reasonOfHiding(identifier, pass)
        try change(identifier, .presented(serverID: serverID, now: pass.now, hiddenBy: hiddenBy), &pass)
        if var record = try pass.transaction.notification(identifier) {
            let before = record
            record.consumeFireDate(now: pass.now, zone: pass.zone)
            // If the app changed the content after it was sent to the server, the new content replaces the shown content.
            if let given, given != record.revision { record.handle(.changed) }
            if record != before { try pass.transaction.save(record) }
            if let badge = record.shownContent.badge { try pass.transaction.setFact(.badge, badge) }
        }
        try pass.transaction.setFact(.presenterTrouble, nil)
        if let hiddenBy {
            pass.log(.notificationWaits, (.notification, identifier), (.reason, hiddenBy))
        } else {
            pass.log(.notificationShown, (.notification, identifier))
        }
    }

    /// Returns the reason why the user does not see a notification that stays until the user responds. Returns `nil` if the user
    /// sees the notification.
    ///
    /// During do-not-disturb, a server keeps notifications in its history. The server may still show critical notifications, and
    /// does not report this.
    private func reasonOfHiding(_ identifier: String, _ pass: Pass) throws -> String? {
        guard try pass.transaction.fact(.doNotDisturbSince) != nil,
            let record = try pass.transaction.notification(identifier), record.staysOnScreen, record.deliveredAt == nil
        else { return nil }
        return "do not disturb is on"
    }

    private mutating func showHidden(_ pass: inout Pass) throws {
        for record in try pass.transaction.notifications() where record.life.isHidden {
            try change(record, .doNotDisturbEnded, &pass)
        }
    }

    private mutating func handleShowFailure(_ identifier: String, _ failure: PresenterFailure, _ pass: inout Pass) throws {
        let record = try pass.transaction.notification(identifier)
        let revision = record.flatMap { $0.state == .presenting ? $0.revision : nil }
        let trouble = calls.handleShowFailure(identifier, failure, isKnown: record != nil, revision: revision, pass.moment)
        if let record { try change(record, .failed(why: trouble.text, isAnswerOpen: trouble.isAnswerOpen), &pass) }
        if let record, record.isBounded, record.life.isUnreported, !trouble.isAnswerOpen { summaries.handleShowFailure() }
        try pass.transaction.setFact(.presenterTrouble, trouble.text)
        pass.log(.notificationWaits, (.notification, identifier), (.reason, trouble.text))
    }

    /// Withdraws notifications that could not be withdrawn because no server was available.
    private mutating func withdrawAgain(_ pass: inout Pass) throws {
        let server = try pass.transaction.fact(.notificationServer)
        for record in try pass.transaction.notifications() {
            guard let number = record.leavingID else { continue }
            pass.perform(.withdraw(identifier: record.identifier, serverID: number, of: server))
        }
    }

    /// Handles the end of the notification server. The numbers of this server are not valid on the next server.
    private mutating func handleServerLoss(_ pass: inout Pass) throws {
        let open = calls.open
        calls.loseServer()
        try pass.transaction.setFact(.doNotDisturbSince, nil)
        try pass.transaction.setFact(.serverHasButtons, nil)
        // The docks of the next session have not received the badge number.
        try pass.transaction.setFact(.badgeTold, nil)
        for record in try pass.transaction.notifications() {
            let event = NoticeLife.Event.serverLost(isAnswerOpen: open.contains(record.identifier))
            try change(record, event, &pass)
        }
    }

    private mutating func change(_ identifier: String, _ event: NoticeLife.Event, _ pass: inout Pass) throws {
        guard let record = try pass.transaction.notification(identifier) else { return }
        try change(record, event, &pass)
    }

    private mutating func change(_ before: NotificationRecord, _ event: NoticeLife.Event, _ pass: inout Pass) throws {
        var record = before
        let commands = record.handle(event)
        if record != before { try pass.transaction.save(record) }
        for command in commands {
            switch command {
            case .withdraw(let number):
                let server = try pass.transaction.fact(.notificationServer)
                // The agent does not wait for a reply if the notification has no number.
                if number != NoticeLife.unknownNumber { calls.beginWithdrawal(record.identifier, pass.moment) }
                pass.perform(.withdraw(identifier: record.identifier, serverID: number, of: server))
            }
        }
    }

    // MARK: Planning

    /// Removes the progress notifications of ended launches from the screen.
    mutating func removeProgress(ended launches: [LaunchRecord], _ pass: inout Pass) throws {
        for launch in launches where launch.kind == .continuedProcessing { try progress.withdraw(launch, &pass) }
    }

    mutating func plan(_ pass: inout Pass, isQuitting: Bool) throws {
        if !hasCleaned {
            hasCleaned = true
            for identifier in try pass.transaction.removeUnreadableNotifications() {
                pass.log(.notificationUnreadable, (.notification, identifier))
            }
        }
        for identifier in calls.removeLost(&pass) { try change(identifier, .answerLost, &pass) }
        let app = try pass.transaction.fact(.app)
        try summaries.plan(&pass)
        var untold: [NotificationRecord] = []
        for record in try pass.transaction.notificationsToHandle() {
            if record.state == .withdrawing { try withdraw(record, app, &pass) }
            if isQuitting { continue }
            guard let record = try withinItsTime(record, &pass) else { continue }
            let scheduled = try scheduled(record, &pass)
            guard scheduled.state == .pending, try isItsTurn(scheduled, &pass) else { continue }
            if scheduled.life.isUnreported, scheduled.isBounded {
                untold.append(scheduled)
            } else {
                try show(scheduled, app, &pass)
            }
        }
        for record in try summaries.gather(untold, &pass) { try show(record, app, &pass) }
        if !isQuitting { try progress.plan(&pass, app) }
        try planBadge(&pass)
    }

    /// Returns the notification, or `nil` if the notification has expired and must not be shown any more.
    private mutating func withinItsTime(_ record: NotificationRecord, _ pass: inout Pass) throws -> NotificationRecord? {
        guard let until = record.until else { return record }
        if until <= pass.now {
            if record.state != .over { try change(record, .timeIsOver(now: pass.now), &pass) }
            return nil
        }
        pass.wake(at: until)
        // The notification seemed to be expired because the clock was ahead. The clock is correct now.
        if record.state == .over { try change(record, .timeIsNotOver, &pass) }
        return try pass.transaction.notification(record.identifier)
    }

    /// Returns the notification in the state that its trigger requires now. After its fire date, a repeating notification waits
    /// again.
    private func scheduled(_ record: NotificationRecord, _ pass: inout Pass) throws -> NotificationRecord {
        guard let schedule = record.schedule, schedule.next != nil else { return record }
        var changed = record
        changed.change(schedule: schedule.read(now: pass.now, zone: pass.zone))
        if !record.life.isUnreported, let next = changed.schedule?.next, next > pass.now { pass.wake(at: next) }
        changed.startNextRepetition(now: pass.now)
        if changed != record { try pass.transaction.save(changed) }
        return changed
    }

    /// Returns `true` if the notification can be sent to the server now. Otherwise, a later pass starts when the notification can
    /// be sent.
    private func isItsTurn(_ record: NotificationRecord, _ pass: inout Pass) throws -> Bool {
        switch calls.turn(of: record.identifier, revision: record.revision, pass.moment) {
        case .now: break
        case .at(let awake):
            pass.wake(at: pass.moment.date(atAwake: awake))
            return false
        case .later: return false
        }
        if let until = record.heldUntil, record.isHeld(now: pass.now) {
            pass.wake(at: until)
            return false
        }
        let content = record.shownContent
        var rules = pass.settings.noticeRules
        // The notification was on the screen before, or the user requested it. No sound is played, so quiet hours do not apply.
        if record.life.isShownAgain { rules.quietHours = nil }
        let verdict = NoticeTiming.verdict(
            dueAt: record.dueAt, level: content.interruptionLevel, category: content.categoryIdentifier,
            rules, now: pass.now, zone: pass.zone)
        switch verdict {
        case .silenced:
            try retainSilenced(record, &pass)
            return false
        case .wait(let until):
            pass.wake(at: until)
            return false
        case .show: return true
        }
    }

    /// If the user has disabled the kind of a notification, keeps the notification for a day. If the user enables the kind again
    /// within this day, the notification is shown. After the day it is discarded, so that it does not fill the ledger.
    private func retainSilenced(_ record: NotificationRecord, _ pass: inout Pass) throws {
        var changed = record
        if let until = changed.recordSilenced(now: pass.now, zone: pass.zone) {
            pass.wake(at: until)
        } else {
            pass.log(.notificationSilenced, (.notification, record.identifier))
        }
        if changed != record { try pass.transaction.save(changed) }
    }

    private mutating func show(_ record: NotificationRecord, _ app: AppRecord?, _ pass: inout Pass) throws {
        try change(record, .handedOver, &pass)
        calls.begin(record.identifier, revision: record.revision, pass.moment)
        let server = try pass.transaction.fact(.notificationServer)
        var notice = try notice(record, app, pass)
        notice.alerts = !notice.isQuiet
        pass.perform(.present(notice, replacing: record.serverID, of: server))
    }

    private func planBadge(_ pass: inout Pass) throws {
        guard try pass.transaction.isBadgeUntold() else { return }
        let wanted = try pass.transaction.fact(.badge) ?? 0
        try pass.transaction.setFact(.badgeTold, wanted)
        pass.perform(.showBadge(wanted))
    }

    private mutating func withdraw(_ record: NotificationRecord, _ app: AppRecord?, _ pass: inout Pass) throws {
        if record.life.needsNumber, calls.turn(of: record.identifier, revision: record.revision, pass.moment) == .now {
            // The notification is shown once more without a sound, because the agent needs the server's number for the
            // notification. If the server replaces notifications by a tag, the notification on the screen is replaced.
            calls.begin(record.identifier, revision: record.revision, pass.moment)
            var notice = try notice(record, app, pass)
            notice.isQuiet = true
            return pass.perform(.present(notice, replacing: nil, of: try pass.transaction.fact(.notificationServer)))
        }
        if record.serverID == nil, let until = calls.numberDue(of: record.identifier, pass.moment) {
            // The server's number of the notification has not arrived. The agent cannot withdraw the notification without this
            // number, and the notification would soon appear.
            return pass.wake(at: pass.moment.date(atAwake: until))
        }
        try change(record, .takenOff(now: pass.now, isAnswerOpen: calls.isOpen(record.identifier)), &pass)
    }

    private func notice(_ record: NotificationRecord, _ app: AppRecord?, _ pass: Pass) throws -> Notice {
        let content = record.shownContent
        let appIdentifier = pass.directories.appIdentifier
        let actions =
            Summaries.isSummary(record.identifier)
            ? [NoticeAction(key: Summaries.showAction, label: "Show")]
            : try pass.transaction.actions(ofCategory: content.categoryIdentifier)
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
            soundName: content.themeSound, isPersistent: record.staysOnScreen)
        notice.soundFile = content.sound == nil ? nil : content.soundFile
        notice.withoutButtons = content.withoutButtons
        notice.serversWithoutButtons = try pass.transaction.fact(.serversWithoutButtons) ?? []
        notice.isQuiet = record.life.deliveredAt != nil
        notice.picture = content.attachments?.first(where: \.isPicture).flatMap { attachment in
            // The name is checked, because a damaged row can contain an invalid name.
            guard TransferRecord.isPlainName(attachment.file) else { return nil }
            return pass.directories.spooled(attachment.file).path
        }
        return notice
    }
}

extension NotificationRecord {
    /// `true` if the notification stays on the screen until the user responds.
    fileprivate var staysOnScreen: Bool { shownContent.interruptionLevel >= 2 }

    /// `true` if the notification goes into a summary when too many notifications arrive. Critical notifications, and
    /// replacements of shown notifications, are always shown individually.
    fileprivate var isBounded: Bool {
        !isAgents && identifier != Self.testIdentifier && shownContent.interruptionLevel < 3 && serverID == nil && !life.mayStand
    }
}
