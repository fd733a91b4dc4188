import BackgroundNotices
import CLibnotify

/// Shows notifications through the desktop portal, as a sandbox has it.
///
/// The portal knows a notification by the identifier that it was given, so showing one again replaces it and asks for no number; the numbers
/// told here are made up. It says neither what became of a notification nor that the person closed it, and tells a button to the process
/// alone that showed it last. Source: org.freedesktop.portal.Notification, versions 1 and 2.
final class PortalDesk: PresenterDesk, @unchecked Sendable {  // because it is used on the loop's thread only
    private let pictures: @Sendable (String) -> NoticePixels?
    private let handler: @Sendable (PresenterEvent) -> Void
    private let names: PortalName
    private let bus = SessionBus(watching: NotificationPortal.busName, isPrivate: true)
    /// The present portal; asked again when another takes the name.
    private var portal: NotificationPortal?
    private var identity: String?
    private var presses: PortalPresses?
    /// Of what this process has given to the portal, shown or not.
    private var numbers: [String: UInt32] = [:]
    /// A later process begins elsewhere: a number of an earlier one is not taken for its own.
    private var lastNumber = UInt32.random(in: 1...0x3FFF_FFFF)
    /// What an earlier process showed, where no portal was there yet: its number, and the portal that it was shown by.
    private var toTakeOver: [String: (serverID: UInt32, giver: String?)] = [:]
    private let turns = PortalTurns()
    /// Counts portals and buses that were lost: what is answered for one of them later means nothing.
    private var generation = 0

    /// - Parameters:
    ///   - appName: of the agent's app; it stands in front of the portal's names.
    ///   - pictures: decodes a file.
    init(
        appName: String, pictures: @escaping @Sendable (String) -> NoticePixels?,
        handler: @escaping @Sendable (PresenterEvent) -> Void
    ) {
        names = PortalName(app: appName)
        self.pictures = pictures
        self.handler = handler
        bus.onLost = { [unowned self] in
            release()
            self.handler(.busLost)
        }
        bus.onServerAppeared = { [unowned self] in
            portal = nil
            identify()
            showLife()
        }
        bus.onServerVanished = { [unowned self] in
            // It was replaced, and its successor is known already.
            if identity != nil, bus.servedIdentity == identity { return }
            forget()
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
        withPortal(mayStart: true) { [unowned self] result in
            let identifier = notice.identifier
            switch result {
            case .failure(let failure): handler(.failed(identifier: identifier, failure))
            case .success(let (portal, connection)):
                let known = numbers[identifier] ?? (giver == identity ? serverID : nil)
                // Known before it is answered: it may be pressed before that.
                let number = known ?? nextNumber()
                numbers[identifier] = number
                let notification = PortalNotification(notice, notice.picture.flatMap(pictures), for: portal)
                let name = names.name(of: identifier)
                turns.take(name, keepsItFor: portal.pause) { [weak self, generation] in
                    guard let self, generation == self.generation else { return }
                    if known != nil, portal.isBrokenByReplacing { remove(name, on: connection) { _, _ in } }
                    notification.send(as: name, on: connection) { [weak self] outcome, wasLate in
                        guard let self, generation == self.generation else { return }
                        noteAnswer(to: identifier, number, outcome, wasLate)
                    }
                }
            }
        }
    }

    private func noteAnswer(to identifier: String, _ number: UInt32, _ outcome: PortalCall.Outcome, _ wasLate: Bool) {
        switch outcome {
        case .isLate: handler(.failed(identifier: identifier, .unanswered("no answer of the portal")))
        case .answered: handler(.presented(identifier: identifier, serverID: number))
        case .failed(let failure):
            if numbers[identifier] == number { numbers[identifier] = nil }
            handler(.failed(identifier: identifier, failure))
        }
        if wasLate { showLife() }
    }

    /// By its name, which needs no number and no word of the portal's version. It comes behind what was given before.
    func withdraw(identifier: String, serverID: UInt32, of giver: String?) {
        let connection: OpaquePointer
        do throws(PresenterFailure) {
            connection = try openBus(busAddress: nil)
        } catch {
            return
        }
        identify()
        // What stands under that name by now may be another one.
        let isMeant = serverID == NoticeLife.unknownNumber || numbers[identifier] ?? serverID == serverID
        guard giver == identity, isMeant else {
            return handler(.withdrawn(identifier: identifier, serverID: serverID))
        }
        numbers[identifier] = nil
        let name = names.name(of: identifier)
        turns.take(name, keepsItFor: 0) { [weak self, generation] in
            guard let self, generation == self.generation else { return }
            remove(name, on: connection) { [weak self] outcome, wasLate in
                guard let self, generation == self.generation else { return }
                // A portal that is not there shows nothing, and one that refuses does not know it.
                if case .isLate = outcome { return }
                handler(.withdrawn(identifier: identifier, serverID: serverID))
                if wasLate { showLife() }
            }
        }
    }

    private func remove(
        _ name: String, on connection: OpaquePointer, tell: @escaping (_ outcome: PortalCall.Outcome, _ wasLate: Bool) -> Void
    ) {
        var words = [g_variant_new_string(name)]
        PortalCall.send("RemoveNotification", g_variant_new_tuple(&words, 1), on: connection, mayStart: false, tell: tell)
    }

    func takeOver(identifier: String, serverID: UInt32, of giver: String?) {
        toTakeOver[identifier] = (serverID, giver)
        takeOverNow()
    }

    /// Where there is no portal yet it is tried when one comes.
    private func takeOverNow() {
        guard !toTakeOver.isEmpty, bus.connection != nil, bus.servedIdentity != nil else { return }
        identify()
        let waiting = toTakeOver
        toTakeOver = [:]
        // Of another portal, which `serverIs` has told by now, nothing stands on the screen.
        for (identifier, (serverID, giver)) in waiting where giver == identity && numbers[identifier] == nil {
            handler(.unheard(identifier: identifier, serverID: serverID))
        }
    }

    /// It answers, or is there anew: what could not be done is worth another try.
    private func showLife() {
        handler(.serverAppeared)
        takeOverNow()
    }

    func showBadge(_ count: Int, desktopEntry: String) {
        guard let connection = try? openBus(busAddress: nil) else { return }
        LauncherBadge.show(count, desktopEntry: desktopEntry, on: connection)
    }

    func ask() {
        portal = nil
        withPortal(mayStart: false) { [unowned self] result in
            guard case .success = result else { return }
            handler(.serverAnswers)
            takeOverNow()
        }
    }

    func describeServer(_ reply: @escaping @Sendable (Result<PresenterServer, PresenterFailure>) -> Void) {
        portal = nil
        withPortal(mayStart: true) { reply($0.map(\.portal.description)) }
    }

    func serverProcess() -> Int32? {
        (try? openBus(busAddress: nil)) == nil ? nil : bus.servedProcess
    }

    func release() {
        forget()
        toTakeOver = [:]
        bus.release()
    }

    private func forget() {
        (portal, presses, numbers) = (nil, nil, [:])
        turns.forget()
        generation += 1
    }

    private func nextNumber() -> UInt32 {
        lastNumber += 1
        return lastNumber
    }

    private func openBus(busAddress: String?) throws(PresenterFailure) -> OpaquePointer {
        let connection = try bus.open(busAddress: busAddress)
        if presses == nil {
            presses = PortalPresses(on: connection) { [unowned self] press in
                guard let identifier = names.identifier(of: press.name), let number = numbers[identifier] else { return }
                switch press.what {
                case .action(let key, let token):
                    handler(.activated(identifier: identifier, serverID: number, action: key, activationToken: token))
                case .reply(let text):
                    handler(.replied(identifier: identifier, serverID: number, text: text))
                }
            }
        }
        return connection
    }

    /// - Parameter use: called once: at once where the portal is known, or when it has said what it can.
    private func withPortal(
        mayStart: Bool,
        _ use: @escaping (Result<(portal: NotificationPortal, connection: OpaquePointer), PresenterFailure>) -> Void
    ) {
        let connection: OpaquePointer
        do throws(PresenterFailure) {
            connection = try openBus(busAddress: nil)
        } catch {
            return use(.failure(error))
        }
        if let portal, bus.servedIdentity == identity { return use(.success((portal, connection))) }
        var isTold = false
        NotificationPortal.query(on: connection, mayStart: mayStart) { [weak self, generation] result, wasLate in
            guard let self, generation == self.generation else { return }
            if case .success(let asked) = result {
                identify()
                // Every version of the portal has them. What shows them behind it is not told.
                handler(.serverHasButtons(true, label: asked.description.label))
                portal = asked
            }
            if !isTold {
                isTold = true
                use(
                    (result ?? .failure(.unresponsive("no answer of the portal"))).map { ($0, connection) })
            }
            if wasLate { showLife() }
        }
    }

    /// Tells which portal the notifications belong to from now on.
    private func identify() {
        guard let found = bus.servedIdentity, found != identity else { return }
        numbers = [:]
        identity = found
        handler(.serverIs(found))
    }
}
