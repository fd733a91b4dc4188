import CLibnotify
import DesktopBus
import Foundation
import Glibc

/// Controls a systemd user manager through the manager's socket, as `systemctl` does. This type does not need a message bus or a
/// process for each call.
///
/// Every call blocks its thread.
package struct UserManagerBus: Sendable {
    package struct Trouble: Error {
        package let words: String
    }

    package enum Job: String, Sendable {
        case start = "StartUnit"
        case restart = "RestartUnit"
        case stop = "StopUnit"
    }

    private let address: String
    /// The timeout of each reply in seconds.
    private let patience: Int

    /// - Parameters:
    ///   - socket: the path of `systemd/private` in the runtime folder.
    ///   - patience: the maximum number of seconds for the manager's greeting and for each reply.
    package init(socket: String, patience: Int) {
        let escaped = g_dbus_address_escape_value(socket)
        defer { g_free(escaped) }
        address = "unix:path=" + (escaped.map { String(cString: $0) } ?? socket)
        self.patience = patience
    }

    /// Requests that the systemd user manager reads all unit files again.
    package func reload() throws(Trouble) {
        try connected { connection throws(Trouble) in
            try g_variant_unref(connection.call(Connection.root, Connection.manager, "Reload", []))
        }
    }

    /// Runs a job of a unit.
    ///
    /// - Parameter waits: `true` if the call waits until the unit runs.
    package func run(_ job: Job, _ unit: String, waits: Bool) throws(Trouble) {
        try connected { connection throws(Trouble) in
            let arguments = [g_variant_new_string(unit), g_variant_new_string("replace")]
            try g_variant_unref(connection.call(Connection.root, Connection.manager, job.rawValue, arguments))
            guard waits else { return }
            let path = try connection.path(of: unit)
            let end = g_get_monotonic_time() + gint64(patience) * 1_000_000
            // The method queries repeatedly whether the job has ended. A signal also reports the end, but a running loop would be
            // necessary to receive the signal. Most jobs are complete before the first query.
            var pause: useconds_t = 1_000
            while try connection.hasJob(path) {
                if g_get_monotonic_time() > end { throw Trouble(words: "the user manager did not complete the job for \(unit)") }
                usleep(pause)
                pause = min(pause * 2, 100_000)
            }
            let state = try connection.text("ActiveState", path)
            if state != "active" { throw Trouble(words: "\(unit) was started, but is \(state)") }
        }
    }

    /// Returns a text property. The property must be a property that every unit has.
    package func text(_ name: String, of unit: String) throws(Trouble) -> String {
        try connected { connection throws(Trouble) in try connection.text(name, connection.path(of: unit)) }
    }

    /// Returns the paths of a unit's file and of the drop-in files of the unit.
    package func files(of unit: String) throws(Trouble) -> [String] {
        try connected { connection throws(Trouble) in
            let path = try connection.path(of: unit)
            let added = try connection.property("Unit", "DropInPaths", path, ofType: "as") { list in
                GVariantReading.children(of: list) { String(cString: g_variant_get_string($0, nil)) }
            }
            return [try connection.text("FragmentPath", path)] + added
        }
    }

    /// Returns the unit that a timer starts.
    package func startedUnit(of timer: String) throws(Trouble) -> String {
        try connected { connection throws(Trouble) in
            try connection.property("Timer", "Unit", connection.path(of: timer), ofType: "s") {
                String(cString: g_variant_get_string($0, nil))
            }
        }
    }

    /// Returns the next calendar date of a timer. Returns `nil` if the timer has no next date.
    package func nextElapse(of timer: String) throws(Trouble) -> Date? {
        try connected { connection throws(Trouble) in
            let path = try connection.path(of: timer)
            let next = try connection.property("Timer", "NextElapseUSecRealtime", path, ofType: "t") { g_variant_get_uint64($0) }
            // The highest number is systemd's value for "never".
            return next == 0 || next == .max ? nil : Date(timeIntervalSince1970: Double(next) / 1e6)
        }
    }

    private func connected<Value>(_ body: (Connection) throws(Trouble) -> Value) throws(Trouble) -> Value {
        var error: UnsafeMutablePointer<GError>?
        let limit = TimeLimit(seconds: patience)
        defer { limit.end() }
        let opened = g_dbus_connection_new_for_address_sync(
            address, G_DBUS_CONNECTION_FLAGS_AUTHENTICATION_CLIENT, nil, limit.cancellable, &error)
        guard let opened else { throw Trouble(taking: error) }
        defer { g_object_unref(UnsafeMutableRawPointer(opened)) }
        let connection = Connection(connection: opened, patience: gint(patience) * 1_000)
        try connection.greet()
        return try body(connection)
    }

    /// An open connection.
    private struct Connection {
        static let root = "/org/freedesktop/systemd1"
        static let manager = "org.freedesktop.systemd1.Manager"

        let connection: OpaquePointer
        /// The timeout of each reply in milliseconds.
        let patience: gint

        /// Waits for the first reply. If a message arrives together with the last line of the login, systemd reads this message
        /// only after the next message arrives. So the first call has no effect, and is repeated if no reply arrives.
        func greet() throws(Trouble) {
            var (pause, left): (gint, gint) = (50, patience)
            while left > pause {
                if let reply = try? call(Self.root, "org.freedesktop.DBus.Peer", "Ping", [], milliseconds: pause) {
                    return g_variant_unref(reply)
                }
                left -= pause
                pause *= 2
            }
            try g_variant_unref(call(Self.root, "org.freedesktop.DBus.Peer", "Ping", [], milliseconds: left))
        }

        /// Calls a method and returns the reply, which the caller has to release.
        func call(
            _ path: String, _ interface: String, _ method: String, _ arguments: [OpaquePointer?], milliseconds: gint? = nil
        ) throws(Trouble) -> OpaquePointer {
            // The call takes ownership of the arguments.
            var arguments = arguments
            var error: UnsafeMutablePointer<GError>?
            let reply = g_dbus_connection_call_sync(
                connection, nil, path, interface, method, g_variant_new_tuple(&arguments, gsize(arguments.count)), nil,
                G_DBUS_CALL_FLAGS_NONE, milliseconds ?? patience, nil, &error)
            guard let reply else { throw Trouble(taking: error) }
            return reply
        }

        /// Returns the object path of a unit. The manager reads the file of the unit if it has not read this file before.
        func path(of unit: String) throws(Trouble) -> String {
            let reply = try call(Self.root, Self.manager, "LoadUnit", [g_variant_new_string(unit)])
            defer { g_variant_unref(reply) }
            guard GVariantReading.type(of: reply) == "(o)",
                let path = GVariantReading.children(of: reply, { String(cString: g_variant_get_string($0, nil)) }).first
            else { throw .unexpected("LoadUnit") }
            return path
        }

        /// - Parameter kind: the interface of the property: `Unit` for properties that every unit has, or the name of a kind of
        ///   unit.
        func property<Value>(
            _ kind: String, _ name: String, _ path: String, ofType type: String, _ read: (OpaquePointer) -> Value
        ) throws(Trouble) -> Value {
            let arguments = [g_variant_new_string("org.freedesktop.systemd1." + kind), g_variant_new_string(name)]
            let reply = try call(path, "org.freedesktop.DBus.Properties", "Get", arguments)
            defer { g_variant_unref(reply) }
            guard GVariantReading.type(of: reply) == "(v)", let boxed = g_variant_get_child_value(reply, 0) else {
                throw .unexpected(name)
            }
            defer { g_variant_unref(boxed) }
            guard let value = g_variant_get_variant(boxed) else { throw .unexpected(name) }
            defer { g_variant_unref(value) }
            guard GVariantReading.type(of: value) == type else { throw .unexpected(name) }
            return read(value)
        }

        func text(_ name: String, _ path: String) throws(Trouble) -> String {
            try property("Unit", name, path, ofType: "s") { String(cString: g_variant_get_string($0, nil)) }
        }

        /// Returns `true` if the unit has a pending job.
        func hasJob(_ path: String) throws(Trouble) -> Bool {
            try property("Unit", "Job", path, ofType: "(uo)") { job in
                let number = g_variant_get_child_value(job, 0)
                defer { if let number { g_variant_unref(number) } }
                return number.map { g_variant_get_uint32($0) != 0 } ?? false
            }
        }
    }
}

extension UserManagerBus.Trouble {
    fileprivate init(taking error: UnsafeMutablePointer<GError>?) {
        guard let error else {
            self.init(words: "the user manager does not respond")
            return
        }
        let isLate =
            g_error_matches(error, g_io_error_quark(), gint(G_IO_ERROR_TIMED_OUT.rawValue)) != 0
            || g_error_matches(error, g_io_error_quark(), gint(G_IO_ERROR_CANCELLED.rawValue)) != 0
        g_dbus_error_strip_remote_error(error)
        self.init(
            words: "the user manager " + (isLate ? "does not respond" : "refuses: \(String(cString: error.pointee.message))"))
        g_error_free(error)
    }

    fileprivate static func unexpected(_ what: String) -> Self {
        Self(words: "the user manager's response about \(what) has an unexpected type")
    }
}
