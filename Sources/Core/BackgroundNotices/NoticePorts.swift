// The port of notifications: what the agent asks of a desktop, and what it is told. Values only.

/// A button. `key` is what comes back when it is pressed; `default` is a click on the body.
package struct NoticeAction: Sendable, Equatable, Codable {
    package var key: String
    package var label: String
    /// A field to type into; `nil`: a plain button.
    package var field: Field?

    package struct Field: Sendable, Equatable, Codable {
        /// What stands on the button that sends the text.
        package var send: String
        /// What stands in the empty field.
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

/// One desktop notification, as it is to be shown. Text is plain: a presenter escapes what its server would interpret.
package struct Notice: Sendable, Equatable, Codable {
    /// The app's own identifier of the notification. Also given to servers that replace by tag.
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
    /// Of the desktop's theme; `nil`: silent.
    package var soundName: String?
    /// The path of a file that is played instead, where the server can.
    package var soundFile: String?
    /// Kept on screen until the person acts (expire timeout 0).
    package var isPersistent: Bool
    /// How far something is, where the server draws that.
    package var percent: Int?
    /// It was shown before, and is shown again: nobody is alerted.
    package var isQuiet = false
    /// The user is to see it now, also if the notification that it replaces is not on the screen any more.
    package var alerts = false
    /// What a person can do instead, where the server has no buttons.
    package var withoutButtons: String?
    /// Labels of servers that advertise buttons, and whose buttons no user found.
    package var serversWithoutButtons: [String] = []
    /// The path of a picture, which a presenter has read by a process of its own: it may come from a stranger.
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
    /// Nobody answers at the addresses that are known, for now.
    case busUnreachable(String)
    /// The bus is there, but nobody owns (or can be started for) org.freedesktop.Notifications.
    case noServer(String)
    case refused(String)
    /// A server is there and said nothing in time; it was not asked to show anything yet.
    case unresponsive(String)
    /// A server was asked and said nothing in time. It may show the notification yet, and then `presented` comes after all.
    case unanswered(String)
}

/// Why a notification left the screen: the numbers of the Desktop Notifications specification.
package enum NoticeCloseReason: Int, Sendable, Equatable {
    case expired = 1
    case dismissed = 2
    case closedByCall = 3
    case undefined = 4
}

/// What a presenter tells, always on its own thread.
package enum PresenterEvent: Sendable, Equatable {
    case presented(identifier: String, serverID: UInt32)
    case failed(identifier: String, PresenterFailure)
    /// A button or the body was pressed. `activationToken` lets a window be raised; often absent.
    case activated(identifier: String, serverID: UInt32, action: String, activationToken: String?)
    /// The person typed something into the field of its button, and sent it.
    case replied(identifier: String, serverID: UInt32, text: String)
    case closed(identifier: String, serverID: UInt32, NoticeCloseReason)
    /// The server was told to take it off the screen, or there is none.
    case withdrawn(identifier: String, serverID: UInt32)
    /// It may stand on the screen, and this server would tell its buttons to nobody but who showed it last.
    case unheard(identifier: String, serverID: UInt32)
    /// Which server the ids that follow belong to, told before the first of them, and before `serverAppeared`. Ids of another one mean nothing.
    case serverIs(String)
    /// The server that `serverIs` named advertises buttons, or does not. Comes before its first notification.
    case serverHasButtons(Bool, label: String)
    /// The person wants to see no notifications, or wants to again.
    case doNotDisturb(Bool)
    /// It answered ``Presenter/ask()``.
    case serverAnswers
    /// A notification server took its name on the bus: what could not be shown is worth another try.
    case serverAppeared
    /// The server left; the ids it gave mean nothing any more.
    case serverVanished
    /// The session bus itself closed the connection.
    case busLost
}

/// Shows, replaces and withdraws desktop notifications.
package protocol Presenter: Sendable {
    /// Shows a notification; answered by `presented` or `failed`.
    ///
    /// - Parameters:
    ///   - serverID: of an earlier showing, which it replaces.
    ///   - server: the one that gave this id, as `serverIs` told it. The id counts with that one alone: another has given it to a stranger.
    func present(_ notice: Notice, replacing serverID: UInt32?, of server: String?)
    /// Takes a notification off the screen; by its identifier alone where the id is ``NoticeLife/unknownNumber`` and the server knows it by that. Unknown ids, and those of another server, are ignored. Answered by `withdrawn`, or not at all
    /// where a server is there and cannot be asked: again, once `serverAppeared` has told that it can.
    func withdraw(identifier: String, serverID: UInt32, of server: String?)
    /// Hears the buttons of what an earlier process showed, where it stands yet. Answered by `unheard` where the server has them told to
    /// that process alone, and by nothing where they are heard from now on, or the server is another one.
    func takeOver(identifier: String, serverID: UInt32, of server: String?)
    /// A number on the app's icon, where a dock or a panel shows one; 0: none.
    func showBadge(_ count: Int, desktopEntry: String)
    /// Asks the server something that shows nothing; answered by `serverAnswers`, or not at all.
    func ask()
}

extension Presenter {
    /// Shows one that was not shown before.
    package func present(_ notice: Notice) { present(notice, replacing: nil, of: nil) }
}
