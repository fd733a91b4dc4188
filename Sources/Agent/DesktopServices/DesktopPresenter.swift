import BackgroundNotices

/// Shows notifications on the desktop of the session bus, through libnotify.
///
/// Every call only posts work to the loop's thread and returns. Every response arrives on that thread as an event. libnotify has
/// one state per process, so only one presenter may exist at a time. Call `stop()` before you create another presenter.
///
/// When the bus is lost, `connect(busAddress:)` with a new address works in the same process. `busLost` may follow a
/// `serverVanished`, or arrive alone. After one of these events, no notification is on the screen and all server ids are invalid.
/// If a server is running already, `serverAppeared` follows soon after the connection, possibly after the first `presented`.
package final class DesktopPresenter: Presenter {
    private let loop: GLibLoop
    private let desk: LibnotifyDesk

    /// Creates a presenter that connects at `connect(busAddress:)` or at the first notification.
    ///
    /// - Parameters:
    /// - appName: the name for notifications without an app name. The name must not be empty.
    ///   - pictures: decodes a file, on the loop's thread.
    ///   - handler: called on the loop's thread, in the order of the events.
    package init(
        loop: GLibLoop, appName: String, pictures: @escaping @Sendable (String) -> NoticePixels? = { _ in nil },
        handler: @escaping @Sendable (PresenterEvent) -> Void
    ) {
        self.loop = loop
        desk = LibnotifyDesk(appName: appName, pictures: pictures, perform: { loop.perform($0) }, handler: handler)
    }

    deinit {
        stop()
    }

    /// Connects to the session bus, unless the presenter is connected. If `busAddress` is `nil`, the address comes from the
    /// environment, or the bus in `XDG_RUNTIME_DIR` is used if its socket exists. A bus is never started.
    ///
    /// A given address is written into the environment of the process, because libnotify reads the address there. `reply` is called on the
    /// loop's thread, with `nil` if the connection succeeded. If a server runs already, `serverAppeared` follows.
    package func connect(
        busAddress: String? = nil, reply: (@Sendable (PresenterFailure?) -> Void)? = nil
    ) {
        loop.perform { [desk] in
            let failure = desk.connect(busAddress: busAddress)
            reply?(failure)
        }
    }

    /// Shows a notification. If a notification with the same identifier is on the screen, it is updated, and `serverID` is not
    /// needed.
    package func present(_ notice: Notice, replacing serverID: UInt32?, of server: String?) {
        loop.perform { [desk] in desk.present(notice, replacing: serverID, of: server) }
    }

    /// Removes a notification from the screen. `closed` follows for a notification of this process. No event follows for a notification of
    /// an earlier process, because its server reports only to the process that sent the notification.
    package func withdraw(identifier: String, serverID: UInt32, of server: String?) {
        loop.perform { [desk] in desk.withdraw(identifier: identifier, serverID: serverID, of: server) }
    }

    package func adoptNotification(identifier: String, serverID: UInt32, of server: String?) {
        loop.perform { [desk] in desk.adoptNotification(identifier: identifier, serverID: serverID, of: server) }
    }

    package func showBadge(_ count: Int, desktopEntry: String) {
        loop.perform { [desk] in desk.showBadge(count, desktopEntry: desktopEntry) }
    }

    package func query() {
        loop.perform { [desk] in desk.query() }
    }

    /// Queries the notification server. If the server is not running, the bus starts it if possible.
    package func describeServer(_ reply: @escaping @Sendable (Result<PresenterServer, PresenterFailure>) -> Void) {
        loop.perform { [desk] in desk.describeServer(reply) }
    }

    /// Passes the process id of the notification server, as the bus reports it, to the handler. Passes `nil` if no server or no bus
    /// exists.
    package func findServerProcess(_ reply: @escaping @Sendable (Int32?) -> Void) {
        loop.perform { [desk] in reply(desk.serverProcess()) }
    }

    /// Disconnects from the bus. Notifications stay on the screen. Calls that are still waiting report no more events.
    package func stop() {
        loop.perform { [desk] in desk.release() }
    }
}
