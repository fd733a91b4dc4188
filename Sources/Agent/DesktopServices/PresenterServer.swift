import BackgroundNotices
import CLibnotify
import DesktopBus

/// The notification server that answers on the session bus.
package struct PresenterServer: Sendable, Equatable {
    package var name: String
    package var vendor: String
    package var version: String
    /// The version of the Desktop Notifications specification it claims, such as "1.2".
    package var specificationVersion: String
    /// What it can do, such as "actions", "body-markup", "persistence".
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

    /// It tells when the person wants to see nothing.
    var hasInhibitions: Bool { capabilities.contains("inhibitions") }

    /// A button can have a field to type into, and what is typed is told.
    var hasReplies: Bool { capabilities.contains("inline-reply") }

    /// Without buttons a server makes a modal dialog of what shall stay (notify-osd).
    var keepsOnScreen: Bool { hasActions }

    /// The bar of the hint "value" stands beside title, text and buttons, and not in their place. Source: measured, xfce4-notifyd 0.7.
    var drawsProgressBesideText: Bool { name != "Xfce Notify Daemon" }

    /// It tells of buttons and closings only who showed a notification, and not everybody. Source: measured, dunst 1.9 and GNOME 43.
    var tellsSenderAlone: Bool { ["dunst", "gnome-shell"].contains(name) }

    /// A replacement of a notification that left the screen appears in the server's history only. Source: plasma-workspace 6 keeps "expired" when
    /// a notification is replaced, and sends no `NotificationClosed` if the notification had actions.
    var hidesReplacements: Bool { name == "Plasma" }

    /// Its name for pixels. Source of the names: Desktop Notifications specification 1.2, "Hints".
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

    /// Asks the server on `connection`, blocking the loop's thread until it answers.
    ///
    /// Asked directly and not by `notify_get_server_caps`, which swallows the error: and whether nobody owns the name,
    /// could not be started, or the bus is gone is just what has to be told apart.
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
