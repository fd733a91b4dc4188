import CLibnotify
import Foundation
import Synchronization

/// A test double of UPower, logind and timedate1, with one connection to a private bus. The connection answers `OnBattery` and
/// emits signals.
final class FakeSystemServices: Sendable {
    nonisolated(unsafe) private let connection: OpaquePointer
    private let answer: CannedReply
    private let filter: guint

    init(on bus: PrivateBus, isOnBattery: Bool) throws {
        let flags = GDBusConnectionFlags(
            G_DBUS_CONNECTION_FLAGS_AUTHENTICATION_CLIENT.rawValue
                | G_DBUS_CONNECTION_FLAGS_MESSAGE_BUS_CONNECTION.rawValue)
        guard let opened = g_dbus_connection_new_for_address_sync(bus.address, flags, nil, nil, nil) else {
            throw FixtureFailure("the private bus is not reachable")
        }
        connection = opened
        let held = CannedReply(isOnBattery: isOnBattery)
        answer = held
        filter = g_dbus_connection_add_filter(
            opened,
            { connection, message, isIncoming, data in
                guard let data, isIncoming != 0, let message else { return message }
                return Unmanaged<CannedReply>.fromOpaque(data).takeUnretainedValue().filter(message, on: connection)
            },
            Unmanaged.passRetained(held).toOpaque(),
            { data in
                if let data { Unmanaged<CannedReply>.fromOpaque(data).release() }
            })
        for name in ["org.freedesktop.UPower", "org.freedesktop.login1", "org.freedesktop.timedate1"] {
            var parameters: [OpaquePointer?] = [g_variant_new_string(name), g_variant_new_uint32(0)]
            let reply = g_dbus_connection_call_sync(
                opened, "org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus", "RequestName",
                g_variant_new_tuple(&parameters, 2), nil, G_DBUS_CALL_FLAGS_NONE, -1, nil, nil)
            guard let reply else { throw FixtureFailure("\(name) could not be owned") }
            g_variant_unref(reply)
        }
    }

    deinit {
        g_dbus_connection_remove_filter(connection, filter)
        g_object_unref(UnsafeMutableRawPointer(connection))
    }

    /// Freezes the services. Frozen services receive requests, and answer them after `thaw()`.
    func freeze() { answer.waiting.withLock { $0 = [] } }

    func thaw() { answer.answerAll(on: connection) }

    func setOnBattery(_ value: Bool) {
        answer.isOnBattery.withLock { $0 = value }
        emit(
            "/org/freedesktop/UPower", "org.freedesktop.DBus.Properties", "PropertiesChanged",
            "('org.freedesktop.UPower', {'OnBattery': <\(value)>}, @as [])")
    }

    func prepareForSleep(_ isStarting: Bool) {
        emit("/org/freedesktop/login1", "org.freedesktop.login1.Manager", "PrepareForSleep", "(\(isStarting),)")
    }

    func timeDateChanged(_ property: String) {
        emit(
            "/org/freedesktop/timedate1", "org.freedesktop.DBus.Properties", "PropertiesChanged",
            "('org.freedesktop.timedate1', {'\(property)': <'x'>}, @as [])")
    }

    private func emit(_ path: String, _ interface: String, _ signal: String, _ parameters: String) {
        let value = g_variant_parse(nil, parameters, nil, nil, nil)
        g_dbus_connection_emit_signal(connection, nil, path, interface, signal, value, nil)
        g_dbus_connection_flush_sync(connection, nil, nil)
    }
}

private final class CannedReply: Sendable {
    let isOnBattery: Mutex<Bool>
    /// The requests that wait for an answer while the services are frozen; `nil` if the services are not frozen.
    let waiting = Mutex<[Question]?>(nil)

    struct Question: @unchecked Sendable {  // because GLib counts its references atomically
        let message: OpaquePointer
    }

    init(isOnBattery: Bool) {
        self.isOnBattery = Mutex(isOnBattery)
    }

    /// Answers the method `Get` on GLib's thread. Other messages are passed on.
    func filter(_ message: OpaquePointer, on connection: OpaquePointer?) -> OpaquePointer? {
        guard g_dbus_message_get_member(message).map({ String(cString: $0) }) == "Get" else { return message }
        let question = Question(message: message)
        let waits = waiting.withLock { waiting in
            waiting?.append(question)
            return waiting != nil
        }
        if !waits { answer(question.message, on: connection) }
        return nil
    }

    func answerAll(on connection: OpaquePointer) {
        let questions = waiting.withLock { waiting in
            defer { waiting = nil }
            return waiting ?? []
        }
        for question in questions { answer(question.message, on: connection) }
    }

    private func answer(_ message: OpaquePointer, on connection: OpaquePointer?) {
        let reply = g_dbus_message_new_method_reply(message)
        let value = g_variant_new_boolean(isOnBattery.withLock { $0 } ? 1 : 0)
        var body: [OpaquePointer?] = [g_variant_new_variant(value)]
        g_dbus_message_set_body(reply, g_variant_new_tuple(&body, 1))
        g_dbus_connection_send_message(connection, reply, G_DBUS_SEND_MESSAGE_FLAGS_NONE, nil, nil)
        g_object_unref(UnsafeMutableRawPointer(reply))
        g_object_unref(UnsafeMutableRawPointer(message))
    }
}
