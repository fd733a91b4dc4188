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
    private let bus = SessionBus(watching: NotificationPortal.busName)
    /// The present portal; asked again when another takes the name.
    private var portal: NotificationPortal?
    private var identity: String?
    private var presses: PortalPresses?
    /// Of what this process has shown.
    private var numbers: [String: UInt32] = [:]
    /// A later process begins elsewhere: a number of an earlier one is not taken for its own.
    private var lastNumber = UInt32.random(in: 1...0x3FFF_FFFF)

    init(pictures: @escaping @Sendable (String) -> NoticePixels?, handler: @escaping @Sendable (PresenterEvent) -> Void) {
        self.pictures = pictures
        self.handler = handler
        bus.onLost = { [unowned self] in
            release()
            self.handler(.busLost)
        }
        bus.onServerAppeared = { [unowned self] in
            portal = nil
            identify()
            self.handler(.serverAppeared)
        }
        bus.onServerVanished = { [unowned self] in
            // It was replaced, and its successor is known already.
            if identity != nil, bus.servedIdentity == identity { return }
            forget()
            self.handler(.serverVanished)
        }
    }

    func connect(busAddress: String?) -> PresenterFailure? {
        let told = busAddress.flatMap(SessionBusAddress.withoutAutolaunch)
        if let told, bus.isElsewhere(than: told) {
            release()
            handler(.busLost)
        }
        do throws(PresenterFailure) {
            _ = try openBus(busAddress: told)
            return nil
        } catch {
            return error
        }
    }

    func present(_ notice: Notice, replacing serverID: UInt32?, of giver: String?) {
        do throws(PresenterFailure) {
            let (portal, connection) = try currentPortal(mayStart: true)
            let notification = PortalNotification(notice, notice.picture.flatMap(pictures), for: portal)
            try notification.send(on: connection)
            let number = numbers[notice.identifier] ?? (giver == identity ? serverID : nil) ?? nextNumber()
            numbers[notice.identifier] = number
            handler(.presented(identifier: notice.identifier, serverID: number))
        } catch {
            handler(.failed(identifier: notice.identifier, error))
        }
    }

    func withdraw(identifier: String, serverID: UInt32, of giver: String?) {
        do throws(PresenterFailure) {
            let (portal, connection) = try currentPortal(mayStart: false)
            // What stands under that name by now may be another one.
            if giver == identity, numbers[identifier].map({ $0 == serverID }) ?? true {
                numbers[identifier] = nil
                try portal.remove(identifier, on: connection)
            }
        } catch {
            switch error {
            case .noServer, .refused: break
            case .unresponsive, .unanswered, .noSessionBus, .busUnreachable: return
            }
        }
        handler(.withdrawn(identifier: identifier, serverID: serverID))
    }

    func takeOver(identifier: String, serverID: UInt32, of giver: String?) {
        guard numbers[identifier] == nil, (try? currentPortal(mayStart: false)) != nil, giver == identity else { return }
        handler(.unheard(identifier: identifier, serverID: serverID))
    }

    func showBadge(_ count: Int, desktopEntry: String) {
        guard let connection = try? openBus(busAddress: nil) else { return }
        LauncherBadge.show(count, desktopEntry: desktopEntry, on: connection)
    }

    func ask() {
        portal = nil
        if (try? currentPortal(mayStart: false)) != nil { handler(.serverAnswers) }
    }

    func describeServer() -> Result<PresenterServer, PresenterFailure> {
        portal = nil
        return Result { () throws(PresenterFailure) in try currentPortal(mayStart: true).portal.description }
    }

    func serverProcess() -> Int32? {
        (try? openBus(busAddress: nil)) == nil ? nil : bus.servedProcess
    }

    func release() {
        forget()
        bus.release()
    }

    private func forget() {
        (portal, presses, numbers) = (nil, nil, [:])
    }

    private func nextNumber() -> UInt32 {
        lastNumber += 1
        return lastNumber
    }

    private func openBus(busAddress: String?) throws(PresenterFailure) -> OpaquePointer {
        if bus.isDead {
            release()
            handler(.busLost)
        }
        let connection = try bus.open(busAddress: busAddress)
        if presses == nil {
            presses = PortalPresses(on: connection) { [unowned self] press in
                guard let number = numbers[press.identifier] else { return }
                switch press.what {
                case .action(let key, let token):
                    handler(.activated(identifier: press.identifier, serverID: number, action: key, activationToken: token))
                case .reply(let text):
                    handler(.replied(identifier: press.identifier, serverID: number, text: text))
                }
            }
        }
        return connection
    }

    private func currentPortal(
        mayStart: Bool
    ) throws(PresenterFailure) -> (portal: NotificationPortal, connection: OpaquePointer) {
        let connection = try openBus(busAddress: nil)
        if let portal, bus.servedIdentity == identity { return (portal, connection) }
        let asked = try NotificationPortal.query(on: connection, mayStart: mayStart)
        identify()
        portal = asked
        return (asked, connection)
    }

    /// Tells which portal the notifications belong to from now on.
    private func identify() {
        guard let found = bus.servedIdentity, found != identity else { return }
        numbers = [:]
        identity = found
        handler(.serverIs(found))
    }
}
