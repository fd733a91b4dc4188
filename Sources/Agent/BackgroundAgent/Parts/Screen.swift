import ProcessSupport
import BackgroundLedger
import BackgroundNotices
import BackgroundScheduling
import Foundation

/// Notifications: shown when due and a server is there, replaced, withdrawn; their buttons become responses.
struct Screen {
    /// Seconds that a notification which is taken back, or an agent that leaves, waits for the server's answer to a showing.
    private static let patience: Double = 5

    /// Handed to the presenter, which has not answered, and since when.
    private var beingShown: [String: Date] = [:]
    /// Revisions that a server refused or that found none: not tried again before something changes.
    private var unpresentable: [String: Int] = [:]
    private var progress = ProgressNotices()

    /// Some answer of the presenter is missing.
    var isShowing: Bool { !beingShown.isEmpty }

    /// Until when the answers that are missing are waited for; `nil`: none is.
    func answersDue(now: Date) -> Date? {
        beingShown.values.map { $0.addingTimeInterval(Self.patience) }.filter { $0 > now }.max()
    }

    /// Something changed that may help: what could not be shown is tried again.
    mutating func tryAgain() { unpresentable = [:] }

    // MARK: What is heard

    /// - Parameter launches: a pressed Cancel ends one of them.
    mutating func note(_ event: PresenterEvent, _ pass: inout Pass, _ launches: inout Launches) throws {
        if try progress.note(event, &pass, &launches) { return }
        switch event {
        case .presented(let identifier, let serverID): try notePresented(identifier, serverID, &pass)
        case .failed(let identifier, let failure): try noteFailure(identifier, failure, &pass)
        case .activated(let identifier, _, let action, _):
            guard let record = try pass.transaction.notification(identifier) else { return }
            let name = action == "default" ? Self.defaultAction : action
            try pass.transaction.addResponse(name, to: record, now: pass.now)
            pass.note("notification \(identifier): pressed \(action)")
        case .closed(let identifier, let serverID, _):
            try change(identifier, pass) { record in
                guard record.state == .delivered, record.serverID == serverID else { return }
                record.state = .closed
                record.endedAt = pass.now
            }
        case .serverAppeared: tryAgain()
        case .serverVanished, .busLost: try noteLostServer(pass)
        }
    }

    /// Apple's name for a click on the notification itself: what the app will see.
    private static let defaultAction = "com.apple.UNNotificationDefaultActionIdentifier"

    private mutating func notePresented(_ identifier: String, _ serverID: UInt32, _ pass: inout Pass) throws {
        beingShown[identifier] = nil
        KillPoint.reach(.noticePresented)
        var wasTakenBack = false
        let now = pass.now
        try change(identifier, pass) { record in
            switch record.state {
            case .presenting:
                record.state = .delivered
                record.serverID = serverID
                record.deliveredAt = now
            // Of what was there before: the app has other content by now, which takes its place on the screen.
            case .withdrawing, .pending:
                record.serverID = serverID
            case .withdrawn:
                wasTakenBack = true
            case .delivered, .closed:
                return
            }
        }
        // The app took it back before the presenter had answered: by now it stands on the screen.
        if wasTakenBack { pass.perform(.withdraw(identifier: identifier, serverID: serverID)) }
        try pass.transaction.setFact(.presenterTrouble, nil)
        pass.note("notification \(identifier) shown")
    }

    private mutating func noteFailure(_ identifier: String, _ failure: PresenterFailure, _ pass: inout Pass) throws {
        beingShown[identifier] = nil
        let trouble =
            switch failure {
            case .noSessionBus(let why): "no session bus: \(why)"
            case .noServer(let why): "no notification server: \(why)"
            case .refused(let why): "the notification server refused: \(why)"
            }
        var refused: Int?
        try change(identifier, pass) { record in
            guard record.state == .presenting else { return }
            record.state = .pending
            record.trouble = trouble
            refused = record.revision
        }
        if let refused { unpresentable[identifier] = refused }
        try pass.transaction.setFact(.presenterTrouble, trouble)
        pass.note("notification \(identifier) waits: \(trouble)")
    }

    /// Numbers of a server that is gone mean nothing to the next one.
    private func noteLostServer(_ pass: Pass) throws {
        for var record in try pass.transaction.notifications() where record.serverID != nil {
            record.serverID = nil
            if record.state == .delivered {
                record.state = .closed
                record.endedAt = pass.now
            }
            try pass.transaction.save(record)
        }
    }

    private func change(_ identifier: String, _ pass: Pass, _ body: (inout NotificationRecord) -> Void) throws {
        guard var record = try pass.transaction.notification(identifier) else { return }
        let before = record
        body(&record)
        if record != before { try pass.transaction.save(record) }
    }

    // MARK: What follows

    /// Launches ended: the progress of continued processing goes off the screen.
    mutating func note(ended launches: [LaunchRecord], _ pass: inout Pass) {
        for launch in launches where launch.kind == .continuedProcessing { progress.withdraw(launch, &pass) }
    }

    mutating func plan(_ pass: inout Pass, isQuitting: Bool) throws {
        let app = try pass.transaction.fact(.app)
        for record in try pass.transaction.notifications() {
            switch record.state {
            case .pending: if !isQuitting { try show(record, app, &pass) }
            case .withdrawing: try withdraw(record, &pass)
            case .presenting, .delivered, .closed, .withdrawn: continue
            }
        }
        if !isQuitting { try progress.plan(&pass, app) }
    }

    private mutating func show(_ record: NotificationRecord, _ app: AppRecord?, _ pass: inout Pass) throws {
        guard unpresentable[record.identifier] != record.revision else { return }
        let verdict = NoticeTiming.verdict(
            dueAt: record.dueAt, isEnabled: pass.settings.notificationsEnabled,
            quietHours: QuietHours(parsing: pass.settings.quietHours), now: pass.now, zone: pass.zone)
        switch verdict {
        case .silenced: return
        case .wait(let until): pass.wake(at: until)
        case .show:
            var record = record
            record.state = .presenting
            record.trouble = nil
            try pass.transaction.save(record)
            beingShown[record.identifier] = pass.now
            pass.perform(.present(try notice(record, app, pass), replacing: record.serverID))
        }
    }

    private func withdraw(_ record: NotificationRecord, _ pass: inout Pass) throws {
        if record.serverID == nil, let until = beingShown[record.identifier]?.addingTimeInterval(Self.patience),
            pass.now < until
        {
            // Its number is on the way: without it there is nothing to take back, and a moment later it stands there.
            return pass.wake(at: until)
        }
        if let serverID = record.serverID {
            pass.perform(.withdraw(identifier: record.identifier, serverID: serverID))
        }
        var record = record
        record.state = .withdrawn
        record.endedAt = pass.now
        try pass.transaction.save(record)
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
        return Notice(
            identifier: record.identifier, appName: app?.displayName ?? appIdentifier, desktopEntry: appIdentifier,
            iconName: appIdentifier, title: content.title,
            body: [content.subtitle, content.body].filter { !$0.isEmpty }.joined(separator: "\n"),
            category: nil, urgency: urgency, actions: [NoticeAction(key: "default", label: "Open")] + actions,
            soundName: content.sound, isPersistent: content.interruptionLevel == 2)
    }
}
