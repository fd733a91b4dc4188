import BackgroundLedger
import BackgroundNotices
import BackgroundScheduling
import Foundation

// Work that a person began: it runs in the process that asked for it; the agent gives it room, shows how far it is, and
// ends it when the person says so or nothing moves.
extension Agent {
    /// What of a progress notification is on the screen.
    struct ShownProgress: Equatable {
        var notice: Notice
        var shownAt: Date
        /// The person closed it: not shown again.
        var isClosed = false
    }

    /// Seconds between two showings of one notification.
    private static let pause: Double = 1
    private static let prefix = "continued-processing-"

    func planContinuedProcessing(_ pass: inout Pass) throws {
        let waiting = try pass.transaction.requests(of: .continuedProcessing)
        let running = try pass.transaction.liveLaunches().filter { $0.kind == .continuedProcessing }
        for launch in running where launch.result != nil { endedLaunches[launch.id!] = .exited(0) }
        for request in waiting {
            guard let host = request.host, !endedProcesses.contains(host) else {
                // It goes with the process that holds its handler.
                try pass.transaction.deleteRequest(request.identifier)
                continue
            }
        }
        for launch in running where launch.host.map(endedProcesses.contains) ?? true {
            endedLaunches[launch.id!] = .unknown
        }
    }

    /// After the ends are settled: room may have come free.
    func startContinuedProcessing(_ pass: inout Pass) throws {
        let waiting = try pass.transaction.requests(of: .continuedProcessing)
        guard !waiting.isEmpty else { return }
        let running = try pass.transaction.liveLaunches().filter { $0.kind == .continuedProcessing }
        let chosen = ContinuedProcessing.startable(waiting.map(\.identifier), running: running.map(\.identifier))
        for request in waiting where chosen.contains(request.identifier) {
            var launch = LaunchRecord(
                kind: .continuedProcessing, identifier: request.identifier, requestToken: request.token, generation: 1,
                reason: "a person began it", simulated: false, servedOccurrence: nil, startedAt: pass.now)
            launch.pid = request.hostPID
            launch.hostStart = request.hostStart
            launch.title = request.title
            launch.subtitle = request.subtitle
            launch.askedAt = request.submittedAt
            launch.woke = "there was room"
            _ = try pass.transaction.insert(launch)
            // The queue is free for the next of that name; whatever becomes of the launch, it is not repeated.
            try pass.transaction.deleteRequest(request.identifier)
            log.note("\(request.identifier) goes on in process \(request.hostPID ?? 0)")
        }
    }

    // MARK: What is shown

    func planProgressNotices(_ pass: inout Pass) throws {
        guard pass.settings.notificationsEnabled, !isQuitting else { return }
        let app = try pass.transaction.fact(.app)
        for launch in try pass.transaction.liveLaunches() where launch.kind == .continuedProcessing {
            let id = launch.id!
            let notice = progressNotice(launch, app)
            if let shown = shownProgress[id] {
                guard !shown.isClosed, shown.notice != notice else { continue }
                let next = shown.shownAt.addingTimeInterval(Self.pause)
                guard pass.now >= next || pass.now < shown.shownAt else {
                    pass.wake(at: next)
                    continue
                }
            }
            shownProgress[id] = ShownProgress(notice: notice, shownAt: pass.now)
            pass.effects.append(.present(notice, replacing: launch.noticeID.flatMap(UInt32.init(exactly:))))
        }
    }

    private func progressNotice(_ launch: LaunchRecord, _ app: AppRecord?) -> Notice {
        let percent = ContinuedProcessing.percent(done: launch.progressDone, total: launch.progressTotal)
        let appIdentifier = ledger.directories.appIdentifier
        let state = launch.stopReason != nil ? "Stopping…" : percent.map { "\($0) %" }
        var notice = Notice(
            identifier: Self.prefix + String(launch.id!), appName: app?.displayName ?? appIdentifier,
            desktopEntry: appIdentifier, iconName: appIdentifier, title: launch.title ?? launch.identifier,
            body: [launch.subtitle ?? "", state ?? ""].filter { !$0.isEmpty }.joined(separator: "\n"),
            category: "transfer", urgency: .low,
            actions: launch.stopReason == nil ? [NoticeAction(key: "cancel", label: "Cancel")] : [], isPersistent: true)
        notice.percent = percent
        return notice
    }

    /// Events of progress notifications; `false`: it is about another one.
    func noteProgressNotice(_ event: PresenterEvent, _ pass: inout Pass) throws -> Bool {
        switch event {
        case .presented(let identifier, let serverID):
            guard let id = Self.launch(of: identifier) else { return false }
            guard var launch = try pass.transaction.launch(id) else { return true }
            launch.noticeID = Int64(serverID)
            try pass.transaction.update(launch)
            // It ended while the server was asked.
            if launch.endedAt != nil { pass.effects.append(.withdraw(identifier: identifier, serverID: serverID)) }
        case .failed(let identifier, let failure):
            guard Self.launch(of: identifier) != nil else { return false }
            log.note("progress is not shown: \(failure)")
        case .activated(let identifier, _, let action, _):
            guard let id = Self.launch(of: identifier) else { return false }
            if action == "cancel", let launch = try pass.transaction.launch(id), launch.endedAt == nil {
                try stop(launch, .cancelled, &pass)
            }
        case .closed(let identifier, _, _):
            guard let id = Self.launch(of: identifier) else { return false }
            shownProgress[id]?.isClosed = true
            guard var launch = try pass.transaction.launch(id), launch.noticeID != nil else { return true }
            launch.noticeID = nil
            try pass.transaction.update(launch)
        case .serverAppeared, .serverVanished, .busLost:
            // Another server shows it anew; the numbers of one that is gone mean nothing to it.
            if event != .serverAppeared { try pass.transaction.forgetProgressNotices() }
            for id in shownProgress.keys where shownProgress[id]?.isClosed == false { shownProgress[id] = nil }
            return false
        }
        return true
    }

    /// It ended: what is on the screen goes. The number stays until the server says that it is closed, so that an agent
    /// which dies in between is made up for.
    func withdrawProgress(of launch: LaunchRecord, _ pass: inout Pass) {
        shownProgress[launch.id!] = nil
        guard let number = launch.noticeID, let serverID = UInt32(exactly: number) else { return }
        pass.effects.append(.withdraw(identifier: Self.prefix + String(launch.id!), serverID: serverID))
    }

    /// Left on the screen by an agent that died before it took it off.
    func withdrawLeftOver(_ launch: LaunchRecord) {
        guard let number = launch.noticeID, let serverID = UInt32(exactly: number) else { return }
        ports.presenter.withdraw(identifier: Self.prefix + String(launch.id!), serverID: serverID)
    }

    private static func launch(of identifier: String) -> Int64? {
        identifier.hasPrefix(prefix) ? Int64(identifier.dropFirst(prefix.count)) : nil
    }
}
