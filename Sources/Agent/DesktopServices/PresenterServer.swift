import BackgroundNotices
import CLibnotify
import DesktopBus

/// The notification server on the session bus.
package struct PresenterServer: Sendable, Equatable {
    package var name: String
    package var vendor: String
    package var version: String
    /// The version of the Desktop Notifications specification that the server reports, for example "1.2".
    package var specificationVersion: String
    /// The server's capabilities, for example "actions", "body-markup" and "persistence".
    package var capabilities: Set<String>

    package init(
        name: String, vendor: String, version: String, specificationVersion: String, capabilities: Set<String>
    ) {
        self.name = name
        self.vendor = vendor
        self.version = version
        self.specificationVersion = specificationVersion
        self.capabilities = capabilities
    }

    var label: String { NotificationServerReport.label(name, version) }
    var hasActions: Bool { capabilities.contains("actions") }
    var hasBody: Bool { capabilities.contains("body") }
    var hasBodyMarkup: Bool { capabilities.contains("body-markup") }

    /// `true` if the server reports whether the user switched on do-not-disturb.
    var hasInhibitions: Bool { capabilities.contains("inhibitions") }

    /// `true` if a button can have a text field, and the server reports the text that the user entered.
    var hasReplies: Bool { capabilities.contains("inline-reply") }

    /// `true` if a notification can stay on the screen. A server without buttons (notify-osd) shows such a notification as a
    /// modal dialog.
    var keepsOnScreen: Bool { hasActions }

    /// `true` if the server draws the progress bar in addition to the title, the text and the buttons. `false` if the bar
    /// replaces the title, the text and the buttons, as measured with xfce4-notifyd 0.7.
    var drawsProgressBesideText: Bool { name != "Xfce Notify Daemon" }

    /// `true` if the server reports pressed and closed notifications only to the process that showed them, as measured with dunst
    /// 1.9 and GNOME 43.
    var reportsToSenderOnly: Bool { ["dunst", "gnome-shell"].contains(name) }

    /// `true` if a replacement appears only in the server's history when the replaced notification has already left the screen.
    /// In plasma-workspace 6, the state "expired" is kept after a replacement. plasma-workspace 6 also sends no
    /// `NotificationClosed` if the notification had actions.
    var hidesReplacements: Bool { name == "Plasma" }

    /// The server's name of the hint for pixels. The Desktop Notifications specification 1.2, "Hints", defines the names.
    var pictureHint: String {
        let version = specificationVersion.split(separator: ".").map { Int($0) ?? 0 } + [0, 0]
        switch (version[0], version[1]) {
        case (2..., _), (1, 2...): return "image-data"
        case (1, 1): return "image_data"
        default: return "icon_data"
        }
    }
}

extension PresenterServer {
    static let busName = "org.freedesktop.Notifications"

    /// Queries the server on `connection`. The call blocks the loop's thread until the server responds.
    ///
    /// `notify_get_server_caps` is not used, because it discards the error. The caller needs this error to distinguish three
    /// cases: no server is running, the server could not be started, or the bus has ended.
    static func query(on connection: OpaquePointer, mayStart: Bool) throws(PresenterFailure) -> PresenterServer {
        let information = try call("GetServerInformation", on: connection, mayStart: mayStart)
        defer { g_variant_unref(information) }
        let capabilities = try call("GetCapabilities", on: connection, mayStart: mayStart)
        defer { g_variant_unref(capabilities) }
        let lists = GVariantReading.children(of: capabilities) { GVariantReading.strings($0, ofType: "as") }
        guard let words = GVariantReading.strings(information, ofType: "(ssss)"), lists.count == 1, let list = lists[0] else {
            throw .refused("the notification server's description has an unexpected type")
        }
        return PresenterServer(
            name: words[0], vendor: words[1], version: words[2], specificationVersion: words[3], capabilities: Set(list))
    }

    private static func call(
        _ method: String, on connection: OpaquePointer, mayStart: Bool
    ) throws(PresenterFailure) -> OpaquePointer {
        var error: UnsafeMutablePointer<GError>?
        let flags = mayStart ? G_DBUS_CALL_FLAGS_NONE : G_DBUS_CALL_FLAGS_NO_AUTO_START
        let reply = g_dbus_connection_call_sync(
            connection, busName, "/org/freedesktop/Notifications", busName, method, nil, nil, flags, -1, nil, &error)
        guard let reply else { throw PresenterFailure(consuming: error) }
        return reply
    }
}
