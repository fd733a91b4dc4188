import BackgroundNotices
import CLibnotify

/// A notification object that is, or is about to be, on screen. Used on the loop's thread only.
///
/// libnotify's own signals are not used, because libnotify reports a signal that arrived before the answer as a signal of the new content.
/// Its object also reports one closing at most. ``LibnotifyDesk`` reads the server's signals in their order.
final class ShownNotice {
    let identifier: String
    let notification: UnsafeMutablePointer<NotifyNotification>
    private(set) var serverID: UInt32
    /// Keys of all buttons that the server was given, also with earlier content: its press may come late.
    private(set) var keys: Set<String> = []

    /// `serverID`: of an earlier showing that this one replaces; 0 for none.
    init(identifier: String, serverID: UInt32) {
        self.identifier = identifier
        self.serverID = serverID
        // libnotify keeps ids as signed; no server counts that far.
        notification = stormy_notification_new(gint(exactly: serverID) ?? 0)
    }

    deinit {
        g_object_unref(UnsafeMutableRawPointer(notification))
    }

    /// Writes everything of `notice` into the object, leaving nothing of what it showed before.
    func fill(with notice: Notice, _ picture: NoticePixels?, for server: PresenterServer) {
        let (title, body) = words(of: notice, for: server)
        notify_notification_update(
            notification, NoticeText.title(title, fallback: notice.appName),
            NoticeText.body(body, isMarkup: server.hasBodyMarkup), InstalledIcon.name(notice.iconName))
        notify_notification_set_app_name(notification, notice.appName)
        notify_notification_set_timeout(
            notification, notice.isPersistent && server.keepsOnScreen ? NOTIFY_EXPIRES_NEVER : NOTIFY_EXPIRES_DEFAULT)
        fillHints(with: notice, for: server)
        if let pixels = picture?.variant { notify_notification_set_hint(notification, server.pictureHint, pixels) }
        notify_notification_clear_actions(notification)
        // Without the capability a server may ignore actions or print them; the spec says: leave them out.
        if server.hasActions { fillActions(with: notice, for: server) }
    }

    /// A server without a body shows the title alone, and one without buttons says what to do instead.
    private func words(of notice: Notice, for server: PresenterServer) -> (title: String, body: String) {
        let body = notice.body(ofServer: server.label, advertisesButtons: server.hasActions)
        guard !server.hasBody, !body.isEmpty else { return (notice.title, body) }
        return ([notice.title, body].filter { !$0.isEmpty }.joined(separator: ": "), "")
    }

    /// Shows or updates it, and returns the id that the server gave. Blocks until the server answers.
    func show() throws(PresenterFailure) -> UInt32 {
        restoreNumber()
        var error: UnsafeMutablePointer<GError>?
        guard notify_notification_show(notification, &error) != 0 else {
            let failure = PresenterFailure(consuming: error)
            if case .unresponsive(let why) = failure { throw .unanswered(why) }
            throw failure
        }
        return UInt32(bitPattern: stormy_notification_id(notification))
    }

    /// Servers may answer with an error when the id is unknown: then it is off the screen, which is what was asked.
    func close() {
        restoreNumber()
        notify_notification_close(notification, nil)
    }

    /// A showing was answered with this number.
    func noteShown(as number: UInt32) { serverID = number }

    /// libnotify forgets the number when content under it was closed, also content that was replaced.
    private func restoreNumber() { stormy_notification_set_id(notification, gint(exactly: serverID) ?? 0) }

    private func fillHints(with notice: Notice, for server: PresenterServer) {
        notify_notification_clear_hints(notification)
        let urgency: NotifyUrgency =
            switch notice.urgency {
            case .low: NOTIFY_URGENCY_LOW
            case .normal: NOTIFY_URGENCY_NORMAL
            case .critical: NOTIFY_URGENCY_CRITICAL
            }
        notify_notification_set_urgency(notification, urgency)
        // Set by hand: libnotify would know it only from a GApplication, which an agent has not.
        setHint("desktop-entry", notice.desktopEntry)
        if let category = notice.category { setHint("category", category) }
        if let percent = notice.percent, server.drawsProgressBesideText {
            notify_notification_set_hint(notification, "value", g_variant_new_int32(Int32(clamping: percent)))
        }
        if let sound = notice.soundName, !notice.isQuiet {
            if let file = notice.soundFile { setHint("sound-file", file) } else { setHint("sound-name", sound) }
        } else {
            notify_notification_set_hint(notification, "suppress-sound", g_variant_new_boolean(1))
        }
        // A tag replaces even when a crash lost the server's id. Vendor hints, so only to those who say they know them.
        // And without a number alone: mako 1.7 aborts where a call has both.
        for tag in ["x-dunst-stack-tag", "x-canonical-private-synchronous"]
        where serverID == 0 && server.capabilities.contains(tag) {
            setHint(tag, notice.identifier)
        }
    }

    private func setHint(_ key: String, _ value: String) {
        notify_notification_set_hint(notification, key, g_variant_new_string(NoticeText.withoutControls(value)))
    }

    /// One field at most: servers know them by a key of their own. Where there are none, such a button would send nothing.
    private func fillActions(with notice: Notice, for server: PresenterServer) {
        let field = server.hasReplies ? notice.actions.first { $0.field != nil } : nil
        if let field, let words = field.field {
            setHint("x-kde-reply-placeholder-text", words.placeholder)
            setHint("x-kde-reply-submit-button-text", words.send)
        }
        for action in notice.actions where !action.key.isEmpty && (action.field == nil || action == field) {
            // libnotify drops an action without a label, and "default" often has none worth showing.
            let label = action.label.isEmpty ? action.key : action.label
            let key = action.field == nil ? action.key : "inline-reply"
            keys.insert(key)
            // libnotify refuses an action without a callback.
            notify_notification_add_action(notification, key, label, { _, _, _ in }, nil, nil)
        }
    }
}
