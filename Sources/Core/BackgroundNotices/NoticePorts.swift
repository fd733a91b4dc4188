// The port of notifications: the agent's requests to a desktop, and the desktop's events. Values only.

/// A button. `key` is reported when the user presses it; `default` is a click on the body.
package struct NoticeAction: Sendable, Equatable, Codable {
    package var key: String
    package var label: String
    /// A text field; `nil` for a plain button.
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

/// The freedesktop urgency of a notification.
package enum NoticeUrgency: Int, Sendable, Codable {
    case low = 0
    case normal = 1
    case critical = 2
}

/// A desktop notification to be shown. The text is plain: a presenter escapes what its server would interpret.
package struct Notice: Sendable, Equatable, Codable {
    /// The app's identifier of the notification. Also passed to servers that replace by tag.
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
    /// A sound of the desktop's theme; `nil` for silence.
    package var soundName: String?
    /// The path of a file that is played instead, if the server supports that.
    package var soundFile: String?
    /// `true` if the notification is kept on the screen until the user acts (expire timeout 0).
    package var isPersistent: Bool
    /// The progress, if the server draws it.
    package var percent: Int?
    /// `true` if the notification was shown before and is shown again. The user is not alerted.
    package var isQuiet = false
    /// `true` if the user is alerted, also if the replaced notification is not on the screen any more.
    package var alerts = false
    /// A hint that is shown if the server has no buttons.
    package var withoutButtons: String?
    /// Labels of servers that advertise buttons, but whose buttons users do not find.
    package var serversWithoutButtons: [String] = []
    /// The path of a picture. The file may be untrusted, so a presenter has a separate process read it.
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

    /// Returns the body for a server, with ``withoutButtons`` if the server draws no buttons.
    package func body(ofServer label: String, advertisesButtons: Bool) -> String {
        let hasButtons = advertisesButtons && !serversWithoutButtons.contains(label)
        return [body, hasButtons ? "" : withoutButtons ?? ""].filter { !$0.isEmpty }.joined(separator: "\n")
    }
}

/// Why a notification could not be shown now.
package enum PresenterFailure: Error, Sendable, Equatable {
    /// No session bus address is known.
    case noSessionBus(String)
    /// No bus responds at the known addresses, for now.
    case busUnreachable(String)
    /// The bus is available, but no process owns (or can be started for) org.freedesktop.Notifications.
    case noServer(String)
    case refused(String)
    /// A server is available but did not respond in time. No notification was passed to it yet.
    case unresponsive(String)
    /// A server was asked to show the notification and did not respond in time. The server may still show it, and `presented` then arrives
    /// late.
    case unanswered(String)
}

/// Why a notification left the screen: the numbers of the Desktop Notifications specification.
package enum NoticeCloseReason: Int, Sendable, Equatable {
    case expired = 1
    case dismissed = 2
    case closedByCall = 3
    case undefined = 4
}

/// An event that a presenter reports, always on its own thread.
package enum PresenterEvent: Sendable, Equatable {
    case presented(identifier: String, serverID: UInt32)
    case failed(identifier: String, PresenterFailure)
    /// A button or the body was pressed. `activationToken` lets a window be raised; often absent.
    case activated(identifier: String, serverID: UInt32, action: String, activationToken: String?)
    /// The user typed text into the field of a button and sent it.
    case replied(identifier: String, serverID: UInt32, text: String)
    case closed(identifier: String, serverID: UInt32, NoticeCloseReason)
    /// The server received the request to take the notification off the screen, or no server is available.
    case withdrawn(identifier: String, serverID: UInt32)
    /// The notification may be on the screen, but this server reports its buttons only to the process that showed it last.
    case unheard(identifier: String, serverID: UInt32)
    /// The server to which the following ids belong. Reported before the first id and before `serverAppeared`. Ids of another server are
    /// invalid.
    case serverIs(String)
    /// The server that `serverIs` named advertises buttons, or does not. Reported before its first notification.
    case serverHasButtons(Bool, label: String)
    /// The user switched do-not-disturb on or off.
    case doNotDisturb(Bool)
    /// The server responded to ``Presenter/ask()``.
    case serverAnswers
    /// A notification server took its name on the bus, so notifications that could not be shown are worth another attempt.
    case serverAppeared
    /// The server left the bus. The ids that it gave are invalid.
    case serverVanished
    /// The session bus itself closed the connection.
    case busLost
}

/// Shows, replaces and withdraws desktop notifications.
package protocol Presenter: Sendable {
    /// Shows a notification. The presenter reports `presented` or `failed`.
    ///
    /// - Parameters:
    ///   - serverID: The number of an earlier showing, which is replaced.
    ///   - server: The server that gave this number, as `serverIs` reported it. Another server may have given the number to another app.
    func present(_ notice: Notice, replacing serverID: UInt32?, of server: String?)
    /// Takes a notification off the screen. If the number is ``NoticeLife/unknownNumber``, the identifier alone is used on servers that
    /// know it.
    ///
    /// Unknown ids and ids of another server are ignored. The presenter reports `withdrawn`. If a server is available but cannot be asked,
    /// the presenter reports nothing; call again after `serverAppeared`.
    func withdraw(identifier: String, serverID: UInt32, of server: String?)
    /// Receives the button presses of a notification that an earlier process showed, if the notification is still on the screen.
    ///
    /// The presenter reports `unheard` if the server reports presses only to that earlier process. Otherwise it reports nothing: presses
    /// are received from now on, or the server is another one.
    func adoptNotification(identifier: String, serverID: UInt32, of server: String?)
    /// Shows a number on the app's icon, if a dock or a panel supports that; 0 removes the number.
    func showBadge(_ count: Int, desktopEntry: String)
    /// Sends a request to the server that shows nothing. The presenter reports `serverAnswers` when the server responds.
    func query()
}

extension Presenter {
    /// Shows a notification that was not shown before.
    package func present(_ notice: Notice) { present(notice, replacing: nil, of: nil) }
}
