import BackgroundLedger
import BackgroundNotices
import BackgroundScheduling
import Foundation

/// Shows the progress of continued processing as notifications. A button in each notification ends the work. This type is a part
/// of ``NotificationPlanner``.
struct ProgressNotices {
    /// The state of a progress notification.
    private struct Shown: Equatable {
        var notice: Notice
        var shownAt: Date
        /// `true` if the user closed the notification. A closed notification is not shown again.
        var isClosed = false
        /// `true` if the notification could not be shown, or if its server does not run any more.
        var isLost = false
    }

    /// The minimum number of seconds between two updates of a notification.
    private static let pause: Double = 1
    private static let prefix = "continued-processing-"

    /// The progress notifications, by the number of the launch.
    private var shown: [Int64: Shown] = [:]

    private static func launch(of identifier: String) -> Int64? {
        identifier.hasPrefix(prefix) ? Int64(identifier.dropFirst(prefix.count)) : nil
    }

    /// Handles an event. Returns `false` if the event concerns another notification.
    mutating func handle(_ event: PresenterEvent, _ pass: inout Pass, _ launches: inout Launches) throws -> Bool {
        switch event {
        case .presented(let identifier, let serverID):
            guard let id = Self.launch(of: identifier) else { return false }
            shown[id]?.isLost = false
            guard let launch = try pass.transaction.launch(id) else { return true }
            try pass.transaction.setProgressNotice(Int64(serverID), launch: id)
            // The launch ended while the server was showing the notification.
            if launch.endedAt != nil {
                let server = try pass.transaction.fact(.notificationServer)
                pass.perform(.withdraw(identifier: identifier, serverID: serverID, of: server))
            }
        case .failed(let identifier, let failure):
            guard let id = Self.launch(of: identifier) else { return false }
            shown[id]?.isLost = true
            pass.log(.progressNotShown, (.reason, "\(failure)"))
        case .activated(let identifier, _, let action, _):
            guard let id = Self.launch(of: identifier) else { return false }
            if action == "cancel", let launch = try pass.transaction.launch(id), launch.endedAt == nil {
                try launches.stop(launch, .cancelled, &pass)
            }
        case .closed(let identifier, _, _):
            guard let id = Self.launch(of: identifier) else { return false }
            shown[id]?.isClosed = true
            guard try pass.transaction.launch(id)?.noticeID != nil else { return true }
            try pass.transaction.setProgressNotice(nil, launch: id)
        case .serverIs(let server):
            // The event that identifies a server arrives before the server's replies to notifications.
            if try pass.transaction.fact(.notificationServer) != server {
                try pass.transaction.forgetProgressNotices()
                for id in shown.keys { shown[id]?.isLost = true }
            }
            return false
        case .withdrawn(let identifier, _): return Self.launch(of: identifier) != nil
        case .serverAnswers, .serverHasButtons, .doNotDisturb, .unheard, .replied: return false
        case .serverAppeared:
            // This event also arrives from a server that already shows the notifications, so only lost notifications are shown
            // again.
            shown = shown.filter { $0.value.isClosed || !$0.value.isLost }
            return false
        case .serverVanished, .busLost:
            // Another server has to show the notifications again, because the numbers of the old server are not valid on another
            // server.
            try pass.transaction.forgetProgressNotices()
            shown = shown.filter { $0.value.isClosed }
            return false
        }
        return true
    }

    /// Removes the notification of an ended launch from the screen. The number is stored until the server reports the removal, so
    /// that the next agent can repeat the removal after a crash.
    mutating func withdraw(_ launch: LaunchRecord, _ pass: inout Pass) throws {
        guard let id = launch.id else { return }
        shown[id] = nil
        if let effect = Self.withdrawal(of: launch, try pass.transaction.fact(.notificationServer)) { pass.perform(effect) }
    }

    /// Returns the effect that removes the notification of a launch. Returns `nil` if no such notification is on the screen.
    static func withdrawal(of launch: LaunchRecord, _ server: String?) -> AgentEffect? {
        guard let id = launch.id, let serverID = launch.noticeID.flatMap(UInt32.init(exactly:)) else { return nil }
        return .withdraw(identifier: prefix + String(id), serverID: serverID, of: server)
    }

    mutating func plan(_ pass: inout Pass, _ app: AppRecord?) throws {
        guard pass.settings.notificationsEnabled else { return }
        for launch in try pass.transaction.liveLaunches() where launch.kind == .continuedProcessing {
            guard let id = launch.id else { continue }
            let notice = notice(of: launch, id, app, pass)
            if let known = shown[id] {
                guard !known.isClosed, known.notice != notice else { continue }
                let next = known.shownAt.addingTimeInterval(Self.pause)
                guard pass.now >= next || pass.now < known.shownAt else {
                    pass.wake(at: next)
                    continue
                }
            }
            shown[id] = Shown(notice: notice, shownAt: pass.now)
            let server = try pass.transaction.fact(.notificationServer)
            pass.perform(.present(notice, replacing: launch.noticeID.flatMap(UInt32.init(exactly:)), of: server))
        }
    }

    private func notice(of launch: LaunchRecord, _ id: Int64, _ app: AppRecord?, _ pass: Pass) -> Notice {
        let percent = ContinuedProcessing.percent(done: launch.progressDone, total: launch.progressTotal)
        let appIdentifier = pass.directories.appIdentifier
        let state = launch.stopReason != nil ? "Stopping…" : percent.map { "\($0) %" }
        var notice = Notice(
            identifier: Self.prefix + String(id), appName: app?.displayName ?? appIdentifier,
            desktopEntry: appIdentifier, iconName: appIdentifier, title: launch.title ?? launch.identifier,
            body: [launch.subtitle ?? "", state ?? ""].filter { !$0.isEmpty }.joined(separator: "\n"),
            category: "transfer", urgency: .low,
            actions: launch.stopReason == nil ? [NoticeAction(key: "cancel", label: "Cancel")] : [], isPersistent: true)
        notice.percent = percent
        return notice
    }
}
