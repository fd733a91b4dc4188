import BackgroundNotices
import CLibnotify

/// A libnotify object of a notification that is on the screen or will be shown. This class is used only on the loop's thread.
///
/// libnotify's own signals are not used, because libnotify reports a signal that arrived before the reply as a signal of the new
/// content. An object of libnotify also reports only one close. ``LibnotifyDesk`` reads the server's signals in their order.
final class ShownNotice {
    let identifier: String
    let notification: UnsafeMutablePointer<NotifyNotification>
    private(set) var serverID: UInt32
    /// The keys of all buttons that the server received, including earlier content, because a press may arrive late.
    private(set) var keys: Set<String> = []

    /// - Parameter serverID: the number of the earlier notification that this notification replaces; 0 if there is no earlier
    ///   notification.
    init(identifier: String, serverID: UInt32) {
        self.identifier = identifier
        self.serverID = serverID
        // libnotify stores ids as signed numbers. A larger id is treated as 0, because no server counts that far.
        notification = stormy_notification_new(gint(exactly: serverID) ?? 0)
    }

    deinit {
        g_object_unref(UnsafeMutableRawPointer(notification))
    }

    /// Writes all of `notice` into the object and removes everything that it showed before.
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
        // A server without the capability may ignore actions or print them. For this reason, the specification recommends leaving
        // out the actions.
        if server.hasActions { fillActions(with: notice, for: server) }
    }

    /// Returns the title and the body for this server. If the server shows no body, the title contains both texts. If the server
    /// has no buttons, the body explains what to do.
    private func words(of notice: Notice, for server: PresenterServer) -> (title: String, body: String) {
        let body = notice.body(ofServer: server.label, advertisesButtons: server.hasActions)
        guard !server.hasBody, !body.isEmpty else { return (notice.title, body) }
        return ([notice.title, body].filter { !$0.isEmpty }.joined(separator: ": "), "")
    }

    /// Shows or updates the notification, and returns the id that the server gave. Blocks until the server responds.
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

    /// Removes the notification. An error of the server for an unknown id is ignored, because such a notification has already left
    /// the screen.
    func close() {
        restoreNumber()
        notify_notification_close(notification, nil)
    }

    /// Records the number with which the server replied.
    func recordServerNumber(as number: UInt32) { serverID = number }

    /// Restores the number, because libnotify forgets it when the content was closed, even content that was replaced.
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
        // The hint is set here, because libnotify reads the desktop entry only from a GApplication, and an agent has no
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
        // A tag replaces a notification even if a crash lost the server's id. The hints are vendor hints, so only servers that announce
        // them receive them. A tag is sent only without a number: mako 1.7 aborts if a call has both.
        for tag in ["x-dunst-stack-tag", "x-canonical-private-synchronous"]
        where serverID == 0 && server.capabilities.contains(tag) {
            setHint(tag, notice.identifier)
        }
    }

    private func setHint(_ key: String, _ value: String) {
        notify_notification_set_hint(notification, key, g_variant_new_string(NoticeText.withoutControls(value)))
    }

    /// Adds the buttons. At most one button has a text field, because servers know the field by one key. On a server without fields, a
    /// button with a field would send nothing, so it is left out.
    private func fillActions(with notice: Notice, for server: PresenterServer) {
        let field = server.hasReplies ? notice.actions.first { $0.field != nil } : nil
        if let field, let words = field.field {
            setHint("x-kde-reply-placeholder-text", words.placeholder)
            setHint("x-kde-reply-submit-button-text", words.send)
        }
        for action in notice.actions where !action.key.isEmpty && (action.field == nil || action == field) {
            // libnotify drops an action without a label, and "default" often has no label.
            let label = action.label.isEmpty ? action.key : action.label
            let key = action.field == nil ? action.key : "inline-reply"
            keys.insert(key)
            // libnotify refuses an action without a callback.
            notify_notification_add_action(notification, key, label, { _, _, _ in }, nil, nil)
        }
    }
}
