import BackgroundNotices
import CLibnotify

/// A libnotify object for a notification that is on the screen or will be shown. This class is used only on the loop's thread.
///
/// The signals of libnotify objects are not used. libnotify reports a signal that arrived before the reply as a signal of the new
/// content. libnotify also reports only once per object that a notification was closed. ``NotificationServerClient`` reads the
/// server's signals in their order.
final class ShownNotice {
    let identifier: String
    let notification: UnsafeMutablePointer<NotifyNotification>
    private(set) var serverID: UInt32
    /// The keys of all buttons that the server received. Buttons of earlier content are included, because the signal of a pressed
    /// button may arrive late.
    private(set) var keys: Set<String> = []

    /// - Parameter serverID: the number of the earlier notification that this notification replaces, or 0 if no earlier
    ///   notification exists.
    init(identifier: String, serverID: UInt32) {
        self.identifier = identifier
        self.serverID = serverID
        // libnotify stores ids as signed numbers. A larger id is treated as 0, because no server assigns such large ids.
        notification = stormy_notification_new(gint(exactly: serverID) ?? 0)
    }

    deinit {
        g_object_unref(UnsafeMutableRawPointer(notification))
    }

    /// Writes the complete content of `notice` into the object and removes all earlier content.
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
        // A server without this capability may ignore actions, or may show them as text. So the specification recommends that no
        // actions are sent to such a server.
        if server.hasActions { fillActions(with: notice, for: server) }
    }

    /// Returns the title and the body for this server. If the server shows no body, the title contains both texts. If the server
    /// has no buttons, the body tells the user what to do.
    private func words(of notice: Notice, for server: PresenterServer) -> (title: String, body: String) {
        let body = notice.body(ofServer: server.label, advertisesButtons: server.hasActions)
        guard !server.hasBody, !body.isEmpty else { return (notice.title, body) }
        return ([notice.title, body].filter { !$0.isEmpty }.joined(separator: ": "), "")
    }

    /// Shows or updates the notification, and returns the id that the server assigned. The call blocks until the server responds.
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

    /// Removes the notification from the screen. A server may report an error for an unknown id. This error is ignored, because
    /// such a notification has already left the screen.
    func close() {
        restoreNumber()
        notify_notification_close(notification, nil)
    }

    /// Records the number that the server assigned to the notification. The server's reply contains this number.
    func recordServerNumber(as number: UInt32) { serverID = number }

    /// Restores the server's number for the notification, because libnotify forgets the number after a notification was closed.
    /// libnotify forgets the number even if only replaced content was closed.
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
        // This hint is set here, because libnotify reads the desktop entry only from a GApplication. An agent's process has no
        // GApplication.
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
        // With a tag, the server replaces a notification even if its number was lost in a crash. Only servers that announce one
        // of these vendor hints receive the hint. A tag is sent only without a number, because mako 1.7 aborts if a call contains
        // both.
        for tag in ["x-dunst-stack-tag", "x-canonical-private-synchronous"]
        where serverID == 0 && server.capabilities.contains(tag) {
            setHint(tag, notice.identifier)
        }
    }

    private func setHint(_ key: String, _ value: String) {
        notify_notification_set_hint(notification, key, g_variant_new_string(NoticeText.withoutControls(value)))
    }

    /// Adds the buttons. At most one button has a text field, because servers support only one key for text fields. If a server
    /// does not support text fields, a button with a text field would send nothing. So a button with a text field is not added in
    /// this case.
    private func fillActions(with notice: Notice, for server: PresenterServer) {
        let field = server.hasReplies ? notice.actions.first { $0.field != nil } : nil
        if let field, let words = field.field {
            setHint("x-kde-reply-placeholder-text", words.placeholder)
            setHint("x-kde-reply-submit-button-text", words.send)
        }
        for action in notice.actions where !action.key.isEmpty && (action.field == nil || action == field) {
            // libnotify ignores an action without a label. The action "default" often has no label, so the key is used as its
            // label.
            let label = action.label.isEmpty ? action.key : action.label
            let key = action.field == nil ? action.key : "inline-reply"
            keys.insert(key)
            // libnotify refuses an action without a callback.
            notify_notification_add_action(notification, key, label, { _, _, _ in }, nil, nil)
        }
    }
}
