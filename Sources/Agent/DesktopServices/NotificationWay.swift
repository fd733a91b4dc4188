import CLibnotify
import Foundation

/// How a process reaches who shows notifications.
package enum NotificationWay: Sendable, Equatable {
    /// It calls the notification server.
    case server
    /// A sandbox hides the server; the desktop portal passes notifications on.
    case portal

    /// Flatpak says in a file what a sandbox lets through. A snap's "desktop" interface lets calls to the server through.
    package static let ofThisProcess = NotificationWay(flatpakInfo: try? Data(contentsOf: URL(fileURLWithPath: "/.flatpak-info")))

    /// - Parameter flatpakInfo: what `/.flatpak-info` says; `nil`: there is none. Source: flatpak-metadata(5).
    init(flatpakInfo: Data?) {
        guard let flatpakInfo else {
            self = .server
            return
        }
        let file = g_key_file_new()
        defer { g_key_file_unref(file) }
        let isRead = flatpakInfo.withUnsafeBytes { bytes in
            g_key_file_load_from_data(
                file, bytes.bindMemory(to: CChar.self).baseAddress, gsize(bytes.count), G_KEY_FILE_NONE, nil) != 0
        }
        self = isRead && (Self.hasWholeBus(file) || Self.mayTalk(to: PresenterServer.busName, file)) ? .server : .portal
    }

    private static func hasWholeBus(_ file: OpaquePointer?) -> Bool {
        text(file, "Context", "sockets")?.split(separator: ";").contains("session-bus") ?? false
    }

    /// By its own name, or by that of a part of the tree of names that it is in.
    private static func mayTalk(to name: String, _ file: OpaquePointer?) -> Bool {
        let parts = name.split(separator: ".")
        let trees = (1...parts.count).map { parts.prefix($0).joined(separator: ".") + ".*" }
        return ([name] + trees).contains { ["talk", "own"].contains(text(file, "Session Bus Policy", $0)) }
    }

    private static func text(_ file: OpaquePointer?, _ group: String, _ key: String) -> String? {
        guard let text = g_key_file_get_string(file, group, key, nil) else { return nil }
        defer { g_free(text) }
        return String(cString: text)
    }
}
