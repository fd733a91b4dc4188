import BackgroundNotices
import CLibnotify
import DesktopBus

/// Shows notifications by libnotify, on the loop's thread. libnotify's own use of the notification portal is switched off: the portal
/// reports neither a closing nor a press to a later process.
final class LibnotifyDesk: @unchecked Sendable {  // because it is used on the loop's thread only
    private let appName: String
    private let pictures: @Sendable (String) -> NoticePixels?
    private let handler: @Sendable (PresenterEvent) -> Void
    private let bus = SessionBus(watching: PresenterServer.busName)
    /// What the present server can do; asked again when another takes the name.
    private var server: PresenterServer?
    /// Which one it is, as it was told last.
    private var identity: String?
    private var shown: [String: ShownNotice] = [:]
    /// Given to a server that did not answer in time.
    private var unanswered: [String: ShownNotice] = [:]
    private var messages: ServerMessages?
    private var signals: ServerSignals?
    /// Identifiers of what an earlier process showed, by number. Most servers send a press and a closing to every process.
    private var takenOver: [UInt32: String] = [:]
    /// Activation tokens by the number of the notification. A token comes just before its press.
    private var tokens: [UInt32: String] = [:]
    private var doNotDisturb: DoNotDisturb?
    /// What an earlier process showed and nobody listens for yet: its number, and the server that gave it.
    private var toTakeOver: [String: (serverID: UInt32, giver: String?)] = [:]
    /// On the connection, where the present server needs it.
    private var labelFilter: guint = 0

    /// - Parameters:
    ///   - pictures: decodes a file.
    ///   - perform: runs work on the loop's thread.
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
            perform { desk?.noteLateAnswer(for: identifier, answer) }
        } onSignOfLife: { [weak self] in
            let desk = self
            perform {
                handler(.serverAppeared)
                desk?.takeOverNow()
            }
        } onSignal: { [weak self] order in
            let desk = self
            perform { desk?.hear(desk?.messages?.takeSignals(upTo: order) ?? []) }
        }
        bus.onLost = { [unowned self] in
            release()
            self.handler(.busLost)
        }
        bus.onServerAppeared = { [unowned self] in
            server = nil
            identify()
            self.handler(.serverAppeared)
            takeOverNow()
        }
        bus.onServerVanished = { [unowned self] in
            // It was replaced, and its successor is known already.
            if identity != nil, bus.servedIdentity == identity { return }
            server = nil
            // Their ids died with the server; a later `show` of these objects would replace a stranger's notification.
            forgetShown()
            doNotDisturb = nil
            self.handler(.serverVanished)
        }
    }

    func connect(busAddress: String?) -> PresenterFailure? {
        do throws(PresenterFailure) {
            _ = try openBus(busAddress: busAddress)
            takeOverNow()
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
                hear(messages?.takeSignals(about: target.serverID) ?? [])
                // An agent that dies after the closing has the notification shown again by the next agent.
                forgetTakenOver(notice.identifier)
                shown[notice.identifier] = nil
                target.close()
                target = ShownNotice(identifier: notice.identifier, serverID: 0)
            }
            target.fill(with: notice, notice.picture.flatMap(pictures), for: server)
            try show(target)
            forgetTakenOver(notice.identifier)
            shown[notice.identifier] = target
            handler(.presented(identifier: notice.identifier, serverID: target.serverID))
        } catch {
            if case .unresponsive = error { messages?.noteSilence() }
            handler(.failed(identifier: notice.identifier, error))
        }
    }

    /// A server that is asked twice shows it twice: the answer of one that froze counts when it comes.
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
        // The server sent these signals before its answer: they are about the content that is replaced.
        if target.serverID != 0 { hear(messages?.takeSignalsBeforeAnswer(about: target.serverID) ?? []) }
        target.noteShown(as: number)
    }

    private func noteLateAnswer(for identifier: String, _ answer: ServerMessages.Answer) {
        guard let target = unanswered.removeValue(forKey: identifier) else { return }
        switch answer {
        case .shown(let number):
            target.noteShown(as: number)
            forgetTakenOver(identifier)
            shown[identifier] = target
            handler(.presented(identifier: identifier, serverID: number))
        case .refused(let why):
            handler(.failed(identifier: identifier, .refused(why)))
        }
    }

    private func forgetShown() {
        shown = [:]
        (unanswered, toTakeOver) = ([:], [:])
        (takenOver, tokens) = ([:], [:])
        messages?.forget()
    }

    func withdraw(identifier: String, serverID: UInt32, of giver: String?) {
        do throws(PresenterFailure) {
            // A server that is not running shows nothing: it is not started for this.
            _ = try currentServer(mayStart: false)
        } catch {
            switch error {
            case .noServer: handler(.withdrawn(identifier: identifier, serverID: serverID))
            case .unresponsive, .unanswered: messages?.noteSilence()
            case .noSessionBus, .busUnreachable, .refused: break
            }
            return
        }
        defer { handler(.withdrawn(identifier: identifier, serverID: serverID)) }
        let old = giver == identity ? serverID : 0
        // What is shown under that name by now may be another one, with another number.
        let same = shown[identifier].flatMap { $0.serverID == old || old == 0 ? $0 : nil }
        let target = same ?? ShownNotice(identifier: identifier, serverID: old)
        guard target.serverID != 0 else { return }
        if takenOver[target.serverID] == identifier { forgetTakenOver(identifier) }
        target.close()
    }

    func takeOver(identifier: String, serverID: UInt32, of giver: String?) {
        toTakeOver[identifier] = (serverID, giver)
        takeOverNow()
    }

    /// Where no server answers, or the bus is not known yet, it is tried when one does.
    private func takeOverNow() {
        guard !toTakeOver.isEmpty, let server = try? currentServer(mayStart: false), let connection = bus.connection else {
            return
        }
        let waiting = toTakeOver
        toTakeOver = [:]
        // Of another server, which `serverIs` has told by now, nothing stands on the screen.
        for (identifier, (serverID, giver)) in waiting where giver == identity && shown[identifier] == nil {
            if server.tellsSenderAlone {
                handler(.unheard(identifier: identifier, serverID: serverID))
            } else {
                takenOver[serverID] = identifier
                listen(on: connection)
            }
        }
    }

    /// Where there is no bus there is no dock.
    func showBadge(_ count: Int, desktopEntry: String) {
        guard let connection = try? openBus(busAddress: nil) else { return }
        LauncherBadge.show(count, desktopEntry: desktopEntry, on: connection)
    }

    /// A frozen one holds the loop's thread for as long as GLib waits.
    func ask() {
        server = nil
        guard (try? currentServer(mayStart: false)) != nil else { return }
        handler(.serverAnswers)
        takeOverNow()
    }

    func describeServer(_ reply: @escaping @Sendable (Result<PresenterServer, PresenterFailure>) -> Void) {
        server = nil
        reply(Result { () throws(PresenterFailure) in try currentServer(mayStart: true) })
    }

    func serverProcess() -> Int32? {
        (try? openBus(busAddress: nil)) == nil ? nil : bus.servedProcess
    }

    func release() {
        // The order matters. A notification that is finalized asks for libnotify's proxy, and would make a new one
        // (and a new connection) if libnotify were let go first. And `notify_uninit` closes what still has an object:
        // what is on screen shall stay there for the next agent to take over.
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

    /// Shown again, or taken off the screen.
    private func forgetTakenOver(_ identifier: String) { takenOver = takenOver.filter { $0.value != identifier } }

    /// Signals in the order of their arrival.
    private func hear(_ signals: [ServerSignal]) {
        // A number of a server that was replaced is the number of another notification by now.
        for signal in signals where identity?.hasSuffix(" " + signal.sender) ?? true { hear(signal) }
    }

    private func hear(_ signal: ServerSignal) {
        let number = signal.number
        let target = shown.values.first { $0.serverID == number }
        guard let identifier = target?.identifier ?? takenOver[number] else { return }
        switch (signal.name, signal.argument) {
        case ("ActivationToken", .text(let token)): tokens[number] = token
        case ("ActionInvoked", .text(let action)):
            let token = tokens.removeValue(forKey: number)
            // Some servers send "default" for each click, also if there is no such action.
            if let target, !target.keys.contains(action) { return }
            handler(.activated(identifier: identifier, serverID: number, action: action, activationToken: token))
        // No version of the specification has this signal. Plasma sends it.
        case ("NotificationReplied", .text(let text)):
            handler(.replied(identifier: identifier, serverID: number, text: text))
        case ("NotificationClosed", .number(let reason)):
            if target != nil { shown[identifier] = nil }
            (takenOver[number], tokens[number]) = (nil, nil)
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

    /// Another server has taken the name, and the bus's word of that is on its way: a number of the old one is a stranger's with the new.
    private func forgetReplacedServer() {
        guard let known = identity, let found = bus.servedIdentity, found != known else { return }
        server = nil
        doNotDisturb = nil
        forgetShown()
        identify()
    }

    /// Tells which server gives the ids from now on.
    private func identify() {
        guard let found = bus.servedIdentity, found != identity else { return }
        identity = found
        handler(.serverIs(found))
    }
}
