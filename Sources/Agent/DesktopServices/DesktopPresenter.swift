import BackgroundNotices

/// Shows notifications on the desktop of the session bus by libnotify.
///
/// Every call posts work to the loop's thread and returns. Every response arrives on this thread as an event. libnotify has one
/// state per process, so only one presenter can exist at a time. Call `stop()` before you create another presenter.
///
/// After the bus is lost, `connect(busAddress:)` with a new address works in the same process. The event `busLost` may follow
/// `serverVanished`, or may arrive alone. After one of these events, no notification is on the screen, and all server ids are
/// invalid. If a server is already running, `serverAppeared` follows soon after the connection, possibly after the first
/// `presented`.
package final class DesktopPresenter: Presenter {
    private let loop: GLibLoop
    private let client: NotificationServerClient

    /// Creates a presenter. The presenter connects when `connect(busAddress:)` is called, or at the first notification.
    ///
    /// - Parameters:
    ///   - appName: the name for notifications without an app name. The name must not be empty.
    ///   - pictures: decodes a file. The function is called on the loop's thread.
    ///   - handler: called on the loop's thread, in the order of the events.
    package init(
        loop: GLibLoop, appName: String, pictures: @escaping @Sendable (String) -> NoticePixels? = { _ in nil },
        handler: @escaping @Sendable (PresenterEvent) -> Void
    ) {
        self.loop = loop
        client = NotificationServerClient(appName: appName, pictures: pictures, perform: { loop.perform($0) }, handler: handler)
    }

    deinit {
        stop()
    }

    /// Connects to the session bus, unless the presenter is already connected. If `busAddress` is `nil`, the address comes from
    /// the environment. If this address is missing or does not work, the bus in `XDG_RUNTIME_DIR` is used if its socket exists.
    /// The presenter never starts a bus.
    ///
    /// A given address is written into the environment of the process, because libnotify reads the address from the environment.
    /// `reply` is called on the loop's thread, with `nil` after a successful connection. If a server is already running,
    /// `serverAppeared` follows.
    package func connect(
        busAddress: String? = nil, reply: (@Sendable (PresenterFailure?) -> Void)? = nil
    ) {
        loop.perform { [client] in
            let failure = client.connect(busAddress: busAddress)
            reply?(failure)
        }
    }

    /// Shows a notification. If a notification with this identifier is on the screen, it is updated, and `serverID` is not
    /// needed.
    package func present(_ notice: Notice, replacing serverID: UInt32?, of server: String?) {
        loop.perform { [client] in client.present(notice, replacing: serverID, of: server) }
    }

    /// Removes a notification from the screen. For a notification of this process, the event `closed` follows. For a notification
    /// of an earlier process, no event follows, because a server reports only to the process that sent the notification.
    package func withdraw(identifier: String, serverID: UInt32, of server: String?) {
        loop.perform { [client] in client.withdraw(identifier: identifier, serverID: serverID, of: server) }
    }

    package func adoptNotification(identifier: String, serverID: UInt32, of server: String?) {
        loop.perform { [client] in client.adoptNotification(identifier: identifier, serverID: serverID, of: server) }
    }

    package func showBadge(_ count: Int, desktopEntry: String) {
        loop.perform { [client] in client.showBadge(count, desktopEntry: desktopEntry) }
    }

    package func query() {
        loop.perform { [client] in client.query() }
    }

    /// Queries the notification server. If the server is not running, the bus starts the server if possible.
    package func describeServer(_ reply: @escaping @Sendable (Result<PresenterServer, PresenterFailure>) -> Void) {
        loop.perform { [client] in client.describeServer(reply) }
    }

    /// Calls the handler with the process id of the notification server that the bus reports. Calls the handler with `nil` if no
    /// server or no bus exists.
    package func findServerProcess(_ reply: @escaping @Sendable (Int32?) -> Void) {
        loop.perform { [client] in reply(client.serverProcess()) }
    }

    /// Disconnects from the bus. The notifications stay on the screen, and pending calls report no more events.
    package func stop() {
        loop.perform { [client] in client.release() }
    }
}
