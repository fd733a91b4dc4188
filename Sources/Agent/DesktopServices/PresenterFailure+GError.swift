import BackgroundNotices
import CLibnotify

extension PresenterFailure {
    /// Reads and frees the error that GLib returned after a failed call over the session bus.
    init(consuming error: UnsafeMutablePointer<GError>?) {
        guard let error else {
            self = .refused("no reason given")
            return
        }
        defer { g_error_free(error) }
        let name = g_dbus_error_get_remote_error(error).map { text in
            defer { g_free(text) }
            return String(cString: text)
        }
        g_dbus_error_strip_remote_error(error)
        let text = error.pointee.message.map { String(cString: $0) } ?? "no reason given"
        if let name {
            self.init(remoteError: name, text: text)
        } else if Self.isIO(error, G_IO_ERROR_CLOSED) || Self.isIO(error, G_IO_ERROR_BROKEN_PIPE) {
            self = .noSessionBus(text)
        } else if Self.isIO(error, G_IO_ERROR_TIMED_OUT) {
            self = .unresponsive(text)
        } else {
            self = .refused(text)
        }
    }

    /// Creates a failure from the name of a D-Bus error. Every error is a refusal of the server, except the errors of the bus.
    init(remoteError name: String, text: String) {
        let bus = "org.freedesktop.DBus.Error."
        let serverMissing: Set<String> = [
            "ServiceUnknown", "NameHasNoOwner", "NoReply", "Timeout", "TimedOut", "UnknownObject", "UnknownMethod",
            "UnknownInterface",
        ]
        guard name.hasPrefix(bus) else {
            self = .refused("\(name): \(text)")
            return
        }
        let kind = String(name.dropFirst(bus.count))
        if kind == "Disconnected" || kind == "NoServer" {
            self = .noSessionBus(text)
        } else if serverMissing.contains(kind) || kind.hasPrefix("Spawn.") {
            self = .noServer(text)
        } else {
            self = .refused("\(name): \(text)")
        }
    }

    private static func isIO(_ error: UnsafeMutablePointer<GError>, _ code: GIOErrorEnum) -> Bool {
        g_error_matches(error, g_io_error_quark(), gint(code.rawValue)) != 0
    }
}
