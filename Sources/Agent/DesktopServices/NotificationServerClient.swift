import BackgroundNotices
import CLibnotify
import DesktopBus

/// Shows notifications with libnotify, on the loop's thread. libnotify's use of the notification portal is switched off. The
/// portal does not report closed or pressed notifications to a later process.
final class NotificationServerClient: @unchecked Sendable {  // This is safe because only the loop's thread uses this class.
    private let appName: String
    private let pictures: @Sendable (String) -> NoticePixels?
    private let handler: @Sendable (PresenterEvent) -> Void
    private let bus = SessionBus(watching: PresenterServer.busName)
    /// The capabilities of the current server. The capabilities are queried again if another server takes the name.
    private var server: PresenterServer?
    /// The identity of the current server that was last reported.
    private var identity: String?
    private var shown: [String: ShownNotice] = [:]
    /// The notifications that were sent to a server that did not respond in time.
    private var unanswered: [String: ShownNotice] = [:]
    private var messages: ServerMessages?
    private var signals: ServerSignals?
    /// The identifiers of notifications of an earlier process, by number. Most servers report to every process that a
    /// notification was pressed or closed.
    private var adoptedNotifications: [UInt32: String] = [:]
    /// The activation tokens, by the number of the notification. A token arrives directly before the signal that the user pressed
    /// the notification or a button.
    private var tokens: [UInt32: String] = [:]
    private var doNotDisturb: DoNotDisturb?
    /// The notifications of an earlier process whose signals this process does not receive yet. Each value contains the number
    /// and the server that assigned this number.
    private var notificationsToAdopt: [String: (serverID: UInt32, giver: String?)] = [:]
    /// The number of the message filter on the connection, or 0 if the current server does not need a filter.
    private var labelFilter: guint = 0

    /// - Parameters:
    ///   - pictures: a closure that decodes a picture file.
    ///   - perform: a closure that runs work on the thread of the GLib loop.
    init(
        appName: String, pictures: @escaping @Sendable (String) -> NoticePixels?,
        perform: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void,
        handler: @escaping @Sendable (PresenterEvent) -> Void
    ) {
        self.appName = appName
        self.pictures = pictures
        self.handler = handler
        messages = ServerMessages { [weak self] identifier, answer in
            let desk = self
            perform { desk?.handleLateReply(for: identifier, answer) }
        } onSignOfLife: { [weak self] in
            let desk = self
            perform {
                handler(.serverAppeared)
                desk?.adoptWaitingNotifications()
            }
        } onSignal: { [weak self] order in
            let desk = self
            perform { desk?.handle(desk?.messages?.drainSignals(upTo: order) ?? []) }
        }
        bus.onLost = { [unowned self] in
            release()
            self.handler(.busLost)
        }
        bus.onServerAppeared = { [unowned self] in
            server = nil
            identify()
            self.handler(.serverAppeared)
            adoptWaitingNotifications()
        }
        bus.onServerVanished = { [unowned self] in
            // The server was replaced, and the new server was already identified.
            if identity != nil, bus.servedIdentity == identity { return }
            server = nil
            // The objects are released, because their ids are invalid on another server. If such an object were shown later, it
            // could replace a notification of another app.
            forgetShown()
            doNotDisturb = nil
            self.handler(.serverVanished)
        }
    }

    func connect(busAddress: String?) -> PresenterFailure? {
        do throws(PresenterFailure) {
            _ = try openBus(busAddress: busAddress)
            adoptWaitingNotifications()
            return nil
        } catch {
            return error
        }
    }

    func present(_ notice: Notice, replacing serverID: UInt32?, of giver: String?) {
        do throws(PresenterFailure) {
            forgetReplacedServer()
            let server = try currentServer(mayStart: true)
            let old = giver == identity ? serverID ?? 0 : 0
            var target = shown[notice.identifier] ?? ShownNotice(identifier: notice.identifier, serverID: old)
            if notice.alerts, server.hidesReplacements, target.serverID != 0 {
                handle(messages?.drainSignals(about: target.serverID) ?? [])
                // The notification is shown again, and the server assigns a new number to the notification. If the agent is
                // killed after it closed the notification, the next agent shows the notification again.
                removeAdopted(notice.identifier)
                shown[notice.identifier] = nil
                target.close()
                target = ShownNotice(identifier: notice.identifier, serverID: 0)
            }
            target.fill(with: notice, notice.picture.flatMap(pictures), for: server)
            try show(target)
            removeAdopted(notice.identifier)
            shown[notice.identifier] = target
            handler(.presented(identifier: notice.identifier, serverID: target.serverID))
        } catch {
            if case .unresponsive = error { messages?.recordMissingReply() }
            handler(.failed(identifier: notice.identifier, error))
        }
    }

    /// Shows the notification. If the server freezes, the notification is not sent a second time, because the server would then
    /// show it twice. The server's late reply is used.
    private func show(_ target: ShownNotice) throws(PresenterFailure) {
        unanswered[target.identifier] = nil
        if let connection = bus.connection { listen(on: connection) }
        let number: UInt32
        do throws(PresenterFailure) {
            number = try target.show()
        } catch {
            if case .unanswered = error {
                unanswered[target.identifier] = target
                messages?.expect(for: target.identifier)
            }
            throw error
        }
        // Signals that the server sent before its reply belong to the replaced content.
        if target.serverID != 0 { handle(messages?.drainSignalsBeforeReply(about: target.serverID) ?? []) }
        target.recordServerNumber(as: number)
    }

    private func handleLateReply(for identifier: String, _ answer: ServerMessages.Reply) {
        guard let target = unanswered.removeValue(forKey: identifier) else { return }
        switch answer {
        case .shown(let number):
            target.recordServerNumber(as: number)
            removeAdopted(identifier)
            shown[identifier] = target
            handler(.presented(identifier: identifier, serverID: number))
        case .refused(let why):
            handler(.failed(identifier: identifier, .refused(why)))
        }
    }

    private func forgetShown() {
        shown = [:]
        (unanswered, notificationsToAdopt) = ([:], [:])
        (adoptedNotifications, tokens) = ([:], [:])
        messages?.forget()
    }

    func withdraw(identifier: String, serverID: UInt32, of giver: String?) {
        do throws(PresenterFailure) {
            // The server is not started here, because a server that is not running shows no notification.
            _ = try currentServer(mayStart: false)
        } catch {
            switch error {
            case .noServer: handler(.withdrawn(identifier: identifier, serverID: serverID))
            case .unresponsive, .unanswered: messages?.recordMissingReply()
            case .noSessionBus, .busUnreachable, .refused: break
            }
            return
        }
        defer { handler(.withdrawn(identifier: identifier, serverID: serverID)) }
        let old = giver == identity ? serverID : 0
        // The notification with this identifier may have been replaced by a newer notification with another number.
        let same = shown[identifier].flatMap { $0.serverID == old || old == 0 ? $0 : nil }
        let target = same ?? ShownNotice(identifier: identifier, serverID: old)
        guard target.serverID != 0 else { return }
        if adoptedNotifications[target.serverID] == identifier { removeAdopted(identifier) }
        target.close()
    }

    func adoptNotification(identifier: String, serverID: UInt32, of giver: String?) {
        notificationsToAdopt[identifier] = (serverID, giver)
        adoptWaitingNotifications()
    }

    /// Adopts the waiting notifications. If no server responds or no bus is known, this call is repeated after a server responds.
    private func adoptWaitingNotifications() {
        guard !notificationsToAdopt.isEmpty, let server = try? currentServer(mayStart: false), let connection = bus.connection
        else {
            return
        }
        let waiting = notificationsToAdopt
        notificationsToAdopt = [:]
        // Only notifications of the current server are adopted. Notifications of another server have left the screen, and
        // `serverIs` has already reported the change of the server.
        for (identifier, (serverID, giver)) in waiting where giver == identity && shown[identifier] == nil {
            if server.reportsToSenderOnly {
                handler(.unheard(identifier: identifier, serverID: serverID))
            } else {
                adoptedNotifications[serverID] = identifier
                listen(on: connection)
            }
        }
    }

    /// Shows the number on the app's icon. Docks receive the number over the bus, so the number is not shown if no bus is
    /// available.
    func showBadge(_ count: Int, desktopEntry: String) {
        guard let connection = try? openBus(busAddress: nil) else { return }
        LauncherBadge.show(count, desktopEntry: desktopEntry, on: connection)
    }

    /// Queries the server again. If the server does not respond, the loop's thread is blocked until GLib's timeout.
    func query() {
        server = nil
        guard (try? currentServer(mayStart: false)) != nil else { return }
        handler(.serverAnswers)
        adoptWaitingNotifications()
    }

    func describeServer(_ reply: @escaping @Sendable (Result<PresenterServer, PresenterFailure>) -> Void) {
        server = nil
        reply(Result { () throws(PresenterFailure) in try currentServer(mayStart: true) })
    }

    func serverProcess() -> Int32? {
        (try? openBus(busAddress: nil)) == nil ? nil : bus.servedProcess
    }

    func release() {
        // The order of these steps matters. While a notification object is finalized, it uses libnotify's proxy. If libnotify
        // were released first, finalizing a notification would create a new proxy and a new connection. `notify_uninit` also
        // closes each notification that still has an object. Notifications must stay on the screen for the next agent.
        forgetShown()
        server = nil
        notify_uninit()
        signals = nil
        doNotDisturb = nil
        if let connection = bus.connection {
            messages?.stopListening(on: connection)
            if labelFilter != 0 { g_dbus_connection_remove_filter(connection, labelFilter) }
            labelFilter = 0
        }
        bus.release()
    }

    private func listen(on connection: OpaquePointer) {
        if signals == nil { signals = ServerSignals(on: connection) }
    }

    /// Forgets a notification of an earlier process, because the notification was shown again or was removed from the screen.
    private func removeAdopted(_ identifier: String) {
        adoptedNotifications = adoptedNotifications.filter { $0.value != identifier }
    }

    /// Handles signals in the order of their arrival.
    private func handle(_ signals: [ServerSignal]) {
        // After a server was replaced, a number of the old server may belong to another notification.
        for signal in signals where identity?.hasSuffix(" " + signal.sender) ?? true { handle(signal) }
    }

    private func handle(_ signal: ServerSignal) {
        let number = signal.number
        let target = shown.values.first { $0.serverID == number }
        guard let identifier = target?.identifier ?? adoptedNotifications[number] else { return }
        switch (signal.name, signal.argument) {
        case ("ActivationToken", .text(let token)): tokens[number] = token
        case ("ActionInvoked", .text(let action)):
            let token = tokens.removeValue(forKey: number)
            // Some servers send "default" for each click, even if the notification does not have this action.
            if let target, !target.keys.contains(action) { return }
            handler(.activated(identifier: identifier, serverID: number, action: action, activationToken: token))
        // Plasma sends this signal, although no version of the specification contains it.
        case ("NotificationReplied", .text(let text)):
            handler(.replied(identifier: identifier, serverID: number, text: text))
        case ("NotificationClosed", .number(let reason)):
            if target != nil { shown[identifier] = nil }
            (adoptedNotifications[number], tokens[number]) = (nil, nil)
            handler(.closed(identifier: identifier, serverID: number, NoticeCloseReason(rawValue: Int(reason)) ?? .undefined))
        default: break
        }
    }

    private func openBus(busAddress: String?) throws(PresenterFailure) -> OpaquePointer {
        let connection = try connect(busAddress)
        messages?.listen(on: connection)
        if notify_is_initted() == 0 {
            g_setenv("NOTIFY_IGNORE_PORTAL", "1", 1)
            notify_init(appName)
        }
        return connection
    }

    private func connect(_ busAddress: String?) throws(PresenterFailure) -> OpaquePointer {
        do {
            return try bus.open(busAddress: busAddress)
        } catch .noAddress {
            throw .noSessionBus(BusTrouble.noAddress.reason)
        } catch {
            throw .busUnreachable(error.reason)
        }
    }

    private func currentServer(mayStart: Bool) throws(PresenterFailure) -> PresenterServer {
        let connection = try openBus(busAddress: nil)
        if let server { return server }
        let asked = try PresenterServer.query(on: connection, mayStart: mayStart)
        identify()
        handler(.serverHasButtons(asked.hasActions, label: asked.label))
        server = asked
        fitLabels(asked, on: connection)
        if asked.hasReplies { listen(on: connection) }
        if asked.hasInhibitions, doNotDisturb == nil {
            doNotDisturb = DoNotDisturb(on: connection) { [unowned self] in handler(.doNotDisturb($0)) }
        }
        return asked
    }

    private func fitLabels(_ server: PresenterServer, on connection: OpaquePointer) {
        if labelFilter != 0 { g_dbus_connection_remove_filter(connection, labelFilter) }
        labelFilter =
            DefaultLabel.isDrawn(by: server) ? g_dbus_connection_add_filter(connection, DefaultLabel.filter, nil, nil) : 0
    }

    /// Forgets the shown notifications if another server has taken the name and the bus's signal about this change has not
    /// arrived yet. On the new server, the old server's numbers can belong to notifications of other apps.
    private func forgetReplacedServer() {
        guard let known = identity, let found = bus.servedIdentity, found != known else { return }
        server = nil
        doNotDisturb = nil
        forgetShown()
        identify()
    }

    /// Reports which server assigns the ids in the following events.
    private func identify() {
        guard let found = bus.servedIdentity, found != identity else { return }
        identity = found
        handler(.serverIs(found))
    }
}
