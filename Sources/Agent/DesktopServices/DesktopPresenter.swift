import BackgroundNotices

/// Shows notifications on the desktop of the session bus, through libnotify.
///
/// Every call only posts to the loop's thread and returns; every answer comes there as an event. libnotify's state is
/// one per process, so there may be one presenter at a time: `stop()` one before making the next.
///
/// When the bus is lost, `connect(busAddress:)` with a new address works in the same process. `busLost` may come after
/// a `serverVanished` or alone; after either, no notification is on screen and no server id means anything. When a
/// server is there already, `serverAppeared` comes soon after connecting, possibly behind the first `presented`.
package final class DesktopPresenter: Presenter {
    private let loop: GLibLoop
    private let desk: LibnotifyDesk

    /// Nothing is connected before `connect(busAddress:)` or the first notification.
    ///
    /// - Parameters:
    ///   - appName: for notifications that name no app of their own; not empty.
    ///   - pictures: decodes a file, on the loop's thread.
    ///   - handler: called on the loop's thread, in order.
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

    /// Connects to the session bus, unless connected. Without a `busAddress` it takes the environment's, or the bus
    /// in `XDG_RUNTIME_DIR` when one lies there; it never lets a bus be started.
    ///
    /// A given address is written into the environment of the process, where libnotify looks for it. `reply` is called
    /// on the loop's thread with nil when connected. A server that is there is then told as `serverAppeared`.
    package func connect(
        busAddress: String? = nil, reply: (@Sendable (PresenterFailure?) -> Void)? = nil
    ) {
        loop.perform { [desk] in
            let failure = desk.connect(busAddress: busAddress)
            reply?(failure)
        }
    }

    /// Shows a notification. The same identifier again updates the one on screen, and then `serverID` is not needed.
    package func present(_ notice: Notice, replacing serverID: UInt32?, of server: String?) {
        loop.perform { [desk] in desk.present(notice, replacing: serverID, of: server) }
    }

    /// Takes a notification off the screen. One of this process is answered by `closed`; one of an earlier process by
    /// nothing, because its server tells only who sent it.
    package func withdraw(identifier: String, serverID: UInt32, of server: String?) {
        loop.perform { [desk] in desk.withdraw(identifier: identifier, serverID: serverID, of: server) }
    }

    package func takeOver(identifier: String, serverID: UInt32, of server: String?) {
        loop.perform { [desk] in desk.takeOver(identifier: identifier, serverID: serverID, of: server) }
    }

    package func showBadge(_ count: Int, desktopEntry: String) {
        loop.perform { [desk] in desk.showBadge(count, desktopEntry: desktopEntry) }
    }

    package func ask() {
        loop.perform { [desk] in desk.ask() }
    }

    /// Asks who shows notifications, starting the server where the bus can.
    package func describeServer(_ reply: @escaping @Sendable (Result<PresenterServer, PresenterFailure>) -> Void) {
        loop.perform { [desk] in desk.describeServer(reply) }
    }

    /// The number of the process that shows notifications, as the bus knows it. `nil`: nobody does, or there is no bus.
    package func findServerProcess(_ reply: @escaping @Sendable (Int32?) -> Void) {
        loop.perform { [desk] in reply(desk.serverProcess()) }
    }

    /// Lets go of the bus; what is on screen stays. No events come after the work posted so far.
    package func stop() {
        loop.perform { [desk] in desk.release() }
    }
}
