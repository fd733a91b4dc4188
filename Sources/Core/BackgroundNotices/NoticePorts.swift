// This file declares the port of notifications: the agent's requests to a desktop, and the desktop's events. Requests and events
// are values.

/// A button of a notification. If the user presses the button, the server reports `key`. The key `default` means a click on the
/// body of the notification.
package struct NoticeAction: Sendable, Equatable, Codable {
    package var key: String
    package var label: String
    /// The text field of the button. `nil` if the button has no text field.
    package var field: Field?

    package struct Field: Sendable, Equatable, Codable {
        /// The label of the button that sends the text.
        package var send: String
        /// The text that is shown in the empty field.
        package var placeholder: String

        package init(send: String, placeholder: String) { (self.send, self.placeholder) = (send, placeholder) }
    }

    package init(key: String, label: String) {
        self.key = key
        self.label = label
    }
}

/// The urgency of a notification, as the freedesktop specification defines it.
package enum NoticeUrgency: Int, Sendable, Codable {
    case low = 0
    case normal = 1
    case critical = 2
}

/// A desktop notification to show. The text contains no markup. A presenter escapes characters that the server would interpret as
/// markup.
package struct Notice: Sendable, Equatable, Codable {
    /// The app's identifier of the notification. Some servers replace a notification if a new notification has the same tag. For
    /// these servers, the identifier is the tag.
    package var identifier: String
    package var appName: String
    /// The name of the app's desktop entry, without ".desktop".
    package var desktopEntry: String
    package var iconName: String
    package var title: String
    package var body: String
    package var category: String?
    package var urgency: NoticeUrgency
    package var actions: [NoticeAction]
    /// A sound of the desktop's sound theme. `nil` for no sound.
    package var soundName: String?
    /// The path of a sound file that is played instead of ``soundName``, if the server supports sound files.
    package var soundFile: String?
    /// `true` if the notification is kept on the screen until the user acts (expire timeout 0).
    package var isPersistent: Bool
    /// The progress in percent, which only some servers show.
    package var percent: Int?
    /// `true` if the notification was shown before and is shown again. The user is not alerted again.
    package var isQuiet = false
    /// `true` if the user is alerted even if the replaced notification is not on the screen any more.
    package var alerts = false
    /// A text that is shown if the server has no buttons.
    package var withoutButtons: String?
    /// The names and versions of servers that report support for buttons, but whose users do not find the buttons.
    package var serversWithoutButtons: [String] = []
    /// The path of a picture. The file may be untrusted, so a separate process reads it.
    package var picture: String?

    package init(
        identifier: String, appName: String, desktopEntry: String, iconName: String, title: String, body: String,
        category: String? = nil, urgency: NoticeUrgency = .normal, actions: [NoticeAction] = [],
        soundName: String? = nil, isPersistent: Bool = false
    ) {
        self.identifier = identifier
        self.appName = appName
        self.desktopEntry = desktopEntry
        self.iconName = iconName
        self.title = title
        self.body = body
        self.category = category
        self.urgency = urgency
        self.actions = actions
        self.soundName = soundName
        self.isPersistent = isPersistent
    }

    /// Returns the body for a server, with ``withoutButtons`` if the server shows no buttons.
    package func body(ofServer label: String, advertisesButtons: Bool) -> String {
        let hasButtons = advertisesButtons && !serversWithoutButtons.contains(label)
        return [body, hasButtons ? "" : withoutButtons ?? ""].filter { !$0.isEmpty }.joined(separator: "\n")
    }
}

/// The reason why a notification could not be shown now.
package enum PresenterFailure: Error, Sendable, Equatable {
    /// No session bus address is known.
    case noSessionBus(String)
    /// The address of the bus is known, but no bus responds at this moment.
    case busUnreachable(String)
    /// The bus is available, but no process owns the name org.freedesktop.Notifications, and no process can be started for this
    /// name.
    case noServer(String)
    case refused(String)
    /// A server is available but did not respond in time. The notification was not yet passed to the server.
    case unresponsive(String)
    /// A server received the notification and did not respond in time. The server may still show the notification. If the server
    /// responds later, the presenter reports `presented`.
    case unanswered(String)
}

/// The reason why a notification was removed from the screen. The numbers are from the Desktop Notifications specification.
package enum NoticeCloseReason: Int, Sendable, Equatable {
    case expired = 1
    case dismissed = 2
    case closedByCall = 3
    case undefined = 4
}

/// An event that a presenter reports. The presenter reports all events on its own thread.
package enum PresenterEvent: Sendable, Equatable {
    case presented(identifier: String, serverID: UInt32)
    case failed(identifier: String, PresenterFailure)
    /// The user pressed a button or the body. An app can raise its window with `activationToken`, which many servers do not send.
    case activated(identifier: String, serverID: UInt32, action: String, activationToken: String?)
    /// The user typed text into the field of a button and sent it.
    case replied(identifier: String, serverID: UInt32, text: String)
    case closed(identifier: String, serverID: UInt32, NoticeCloseReason)
    /// The server received the request to remove the notification from the screen, or no server is available.
    case withdrawn(identifier: String, serverID: UInt32)
    /// The notification may be on the screen, but this process does not receive its button presses. The server reports presses
    /// only to the process that last showed the notification.
    case unheard(identifier: String, serverID: UInt32)
    /// Reports which server assigned the ids in the following events. This event is reported before the first id and before
    /// `serverAppeared`. Ids that another server assigned are not valid.
    case serverIs(String)
    /// Reports whether the server of the last `serverIs` advertises buttons. This event is reported before the server's first
    /// notification.
    case serverHasButtons(Bool, label: String)
    /// The user switched do-not-disturb on or off.
    case doNotDisturb(Bool)
    /// The server responded to ``Presenter/query()``.
    case serverAnswers
    /// A notification server became available on the bus, so notifications that could not be shown are tried again.
    case serverAppeared
    /// The server left the bus, so the ids that this server assigned are not valid any more.
    case serverVanished
    /// The session bus closed the connection.
    case busLost
}

/// Shows, replaces and withdraws desktop notifications.
package protocol Presenter: Sendable {
    /// Shows a notification. The presenter then reports `presented` or `failed`.
    ///
    /// - Parameters:
    ///   - serverID: The number of an earlier notification that the new notification replaces.
    ///   - server: The server that assigned `serverID`, as `serverIs` reported it. Another server may have assigned the same
    ///     number to a notification of another app.
    func present(_ notice: Notice, replacing serverID: UInt32?, of server: String?)
    /// Removes a notification from the screen. If the server number is ``NoticeLife/unknownNumber``, the server finds the
    /// notification by its identifier, which only some servers support.
    ///
    /// Unknown numbers, and numbers of another server, are ignored. The presenter reports `withdrawn`. If a server is available
    /// but cannot be reached, the presenter reports nothing, and the caller repeats the call after `serverAppeared`.
    func withdraw(identifier: String, serverID: UInt32, of server: String?)
    /// Makes this presenter report button presses on a notification that an earlier process showed, if the notification is still
    /// on the screen.
    ///
    /// If the server reports presses only to the earlier process, the presenter reports `unheard`. The presenter reports nothing
    /// if it will receive the presses, or if another server showed the notification.
    func adoptNotification(identifier: String, serverID: UInt32, of server: String?)
    /// Shows a number on the app's icon, if a dock or a panel supports this. The value 0 removes the number.
    func showBadge(_ count: Int, desktopEntry: String)
    /// Sends a request without a visible effect to the server. If the server responds, the presenter reports `serverAnswers`.
    func query()
}

extension Presenter {
    /// Shows a notification that was not shown before.
    package func present(_ notice: Notice) { present(notice, replacing: nil, of: nil) }
}
