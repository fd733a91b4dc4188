import BackgroundLedger
import BackgroundNotices
import Foundation

// Notifications: shown when due and a server is there, replaced, withdrawn; their buttons become responses.
extension Agent {
    /// Seconds that a notification which is taken back, or an agent that leaves, waits for the server's answer to a showing.
    static let presenterPatience: Double = 5

    func planNotices(_ pass: inout Pass) throws {
        let app = try pass.transaction.fact(.app)
        for var record in try pass.transaction.notifications() {
            switch record.state {
            case .pending:
                guard !isQuitting, unpresentable[record.identifier] != record.revision else { continue }
                let verdict = NoticeTiming.verdict(
                    dueAt: record.dueAt, isEnabled: pass.settings.notificationsEnabled,
                    quietHours: QuietHours(parsing: pass.settings.quietHours), now: pass.now, zone: zone)
                switch verdict {
                case .silenced: continue
                case .wait(let until): pass.wake(at: until)
                case .show:
                    record.state = .presenting
                    record.trouble = nil
                    try pass.transaction.save(record)
                    beingShown[record.identifier] = pass.now
                    pass.effects.append(.present(try notice(record, app, pass.transaction), replacing: record.serverID))
                }
            case .withdrawing:
                if record.serverID == nil, let until = beingShown[record.identifier]?.addingTimeInterval(Self.presenterPatience),
                    pass.now < until
                {
                    // Its number is on the way: without it there is nothing to take back, and a moment later it stands there.
                    pass.wake(at: until)
                    continue
                }
                if let serverID = record.serverID {
                    pass.effects.append(.withdraw(identifier: record.identifier, serverID: serverID))
                }
                record.state = .withdrawn
                record.endedAt = pass.now
                try pass.transaction.save(record)
            case .presenting, .delivered, .closed, .withdrawn:
                continue
            }
        }
    }

    private func notice(_ record: NotificationRecord, _ app: AppRecord?, _ transaction: LedgerTransaction) throws -> Notice {
        let content = record.content
        let appIdentifier = ledger.directories.appIdentifier
        let actions = try transaction.actions(ofCategory: content.categoryIdentifier)
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

    func note(_ event: PresenterEvent, _ pass: inout Pass) throws {
        switch event {
        case .presented(let identifier, let serverID):
            beingShown[identifier] = nil
            CrashPoint.reach("agent.noticePresented")
            var wasTakenBack = false
            try change(identifier, pass) { record in
                switch record.state {
                case .presenting:
                    record.state = .delivered
                    record.serverID = serverID
                    record.deliveredAt = pass.now
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
            if wasTakenBack { pass.effects.append(.withdraw(identifier: identifier, serverID: serverID)) }
            try pass.transaction.setFact(.presenterTrouble, nil)
            log.note("notification \(identifier) shown")
        case .failed(let identifier, let failure):
            beingShown[identifier] = nil
            try noteFailure(identifier, failure, &pass)
        case .activated(let identifier, _, let action, _):
            guard let record = try pass.transaction.notification(identifier) else { return }
            let name = action == "default" ? Self.defaultAction : action
            try pass.transaction.addResponse(name, to: record, now: pass.now)
            log.note("notification \(identifier): pressed \(action)")
        case .closed(let identifier, let serverID, _):
            try change(identifier, pass) { record in
                guard record.state == .delivered, record.serverID == serverID else { return }
                record.state = .closed
                record.endedAt = pass.now
            }
        case .serverAppeared:
            unpresentable = [:]
        case .serverVanished, .busLost:
            // Numbers of a server that is gone mean nothing to the next one.
            for var record in try pass.transaction.notifications() where record.serverID != nil {
                record.serverID = nil
                if record.state == .delivered {
                    record.state = .closed
                    record.endedAt = pass.now
                }
                try pass.transaction.save(record)
            }
            if event == .busLost { hasToldSession = false }
        }
    }

    /// Apple's name for a click on the notification itself: what the app will see.
    private static let defaultAction = "com.apple.UNNotificationDefaultActionIdentifier"

    private func noteFailure(_ identifier: String, _ failure: PresenterFailure, _ pass: inout Pass) throws {
        let trouble =
            switch failure {
            case .noSessionBus(let why): "no session bus: \(why)"
            case .noServer(let why): "no notification server: \(why)"
            case .refused(let why): "the notification server refused: \(why)"
            }
        try change(identifier, pass) { record in
            guard record.state == .presenting else { return }
            record.state = .pending
            record.trouble = trouble
            unpresentable[identifier] = record.revision
        }
        try pass.transaction.setFact(.presenterTrouble, trouble)
        log.note("notification \(identifier) waits: \(trouble)")
    }

    private func change(_ identifier: String, _ pass: Pass, _ body: (inout NotificationRecord) -> Void) throws {
        guard var record = try pass.transaction.notification(identifier) else { return }
        let before = record
        body(&record)
        if record != before { try pass.transaction.save(record) }
    }
}
