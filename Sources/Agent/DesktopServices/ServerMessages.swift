import BackgroundNotices
import CLibnotify
import Synchronization

/// Records the messages of a notification server in the order of their arrival, by a filter on the connection.
///
/// The order matters, because libnotify waits for the reply to `Notify` and reports this reply before signals that arrived
/// earlier. Signals that arrived earlier belong to the replaced content, which has the same number as the new content.
///
/// A server that froze still has the notification in its queue, and shows it when the server continues. A second call would then
/// show the notification twice. GLib ignores a late reply, but the filter receives the reply and the number of its call.
final class ServerMessages: Sendable {
    enum Reply: Equatable {
        case shown(UInt32)
        case refused(String)
    }

    private struct State {
        /// The serial number of the last `Notify` that was sent.
        var lastCall: guint32 = 0
        var expected: [guint32: String] = [:]
        /// A reply that arrived before ``expect(for:)``, and the number of its call. Only one call runs at a time, so at most one
        /// such reply exists.
        var early: (call: guint32, reply: Reply)?
        /// `true` after the server did not reply in time, until the server replies again.
        var isSilent = false
        /// The signals that arrived and were not yet returned to a caller.
        var signals: [ServerSignal] = []
        /// The position of the last signal that arrived.
        var lastOrder: UInt64 = 0
        /// The position of the last signal that arrived before the reply to the last `Notify`.
        var lastOrderBeforeAnswer: UInt64 = 0
        var filter: guint = 0
    }

    private let state = Mutex(State())
    /// A function that is called on any thread, with the identifier of the notification.
    private let onAnswer: @Sendable (String, Reply) -> Void
    private let onSignOfLife: @Sendable () -> Void
    private let onSignal: @Sendable (UInt64) -> Void

    /// - Parameters:
    ///   - onAnswer: called on GLib's thread after an expected reply arrived.
    ///   - onSignOfLife: called on GLib's thread after a silent server sent a reply.
    ///   - onSignal: called on GLib's thread after a signal arrived. The argument is the position of the signal, for
    ///     ``drainSignals(upTo:about:)``.
    init(
        onAnswer: @escaping @Sendable (String, Reply) -> Void, onSignOfLife: @escaping @Sendable () -> Void,
        onSignal: @escaping @Sendable (UInt64) -> Void
    ) {
        (self.onAnswer, self.onSignOfLife, self.onSignal) = (onAnswer, onSignOfLife, onSignal)
    }

    func listen(on connection: OpaquePointer) {
        guard state.withLock({ $0.filter }) == 0 else { return }
        let filter = g_dbus_connection_add_filter(
            connection,
            { _, message, isIncoming, data in
                guard let message, let data else { return message }
                Unmanaged<ServerMessages>.fromOpaque(data).takeUnretainedValue().see(message, isIncoming: isIncoming != 0)
                return message
            }, Unmanaged.passRetained(self).toOpaque(),
            { data in if let data { Unmanaged<ServerMessages>.fromOpaque(data).release() } })
        state.withLock { $0.filter = filter }
    }

    func stopListening(on connection: OpaquePointer) {
        let filter = state.withLock { state in
            defer { (state.filter, state.signals) = (0, []) }
            return state.filter
        }
        if filter != 0 { g_dbus_connection_remove_filter(connection, filter) }
    }

    /// Expects a late reply to the last call, because the server did not reply in time. The reply belongs to the notification
    /// with this identifier.
    func expect(for identifier: String) {
        let early = state.withLock { state -> Reply? in
            state.isSilent = true
            if let early = state.early, early.call == state.lastCall { return early.reply }
            state.expected[state.lastCall] = identifier
            return nil
        }
        if let early { onAnswer(identifier, early) }
    }

    /// Records that the server did not reply in time to a call. A late reply to this call is not needed.
    func recordMissingReply() { state.withLock { $0.isSilent = true } }

    /// Forgets the expected replies, because the server does not run any more and sends no replies.
    func forget() { state.withLock { ($0.expected, $0.early, $0.isSilent) = ([:], nil, false) } }

    /// Removes and returns the signals that arrived, up to the signal at this position.
    ///
    /// - Parameter number: the notification whose signals are returned, or `nil` for all signals.
    func drainSignals(upTo last: UInt64 = .max, about number: UInt32? = nil) -> [ServerSignal] {
        state.withLock { state -> [ServerSignal] in
            let taken = state.signals.filter { $0.order <= last && (number == nil || $0.number == number) }
            state.signals.removeAll { $0.order <= last && (number == nil || $0.number == number) }
            return taken
        }
    }

    /// Removes and returns the signals about a notification that arrived before the reply to the last call.
    func drainSignalsBeforeReply(about number: UInt32) -> [ServerSignal] {
        drainSignals(upTo: state.withLock { $0.lastOrderBeforeAnswer }, about: number)
    }

    private func see(_ message: OpaquePointer, isIncoming: Bool) {
        let type = g_dbus_message_get_message_type(message)
        if !isIncoming {
            guard type == G_DBUS_MESSAGE_TYPE_METHOD_CALL, text(g_dbus_message_get_member(message)) == "Notify",
                text(g_dbus_message_get_interface(message)) == PresenterServer.busName
            else { return }
            let serial = g_dbus_message_get_serial(message)
            return state.withLock { ($0.lastCall, $0.early) = (serial, nil) }
        }
        if type == G_DBUS_MESSAGE_TYPE_SIGNAL { return seeSignal(message) }
        // A message of the bus does not show that the server responds.
        guard text(g_dbus_message_get_sender(message)) != "org.freedesktop.DBus" else { return }
        let reply: Reply
        switch type {
        case G_DBUS_MESSAGE_TYPE_METHOD_RETURN:
            let number = g_dbus_message_get_body(message).flatMap { body -> UInt32? in
                guard text(g_variant_get_type_string(body)) == "(u)" else { return nil }
                guard let child = g_variant_get_child_value(body, 0) else { return nil }
                defer { g_variant_unref(child) }
                return g_variant_get_uint32(child)
            }
            reply = .shown(number ?? 0)
        case G_DBUS_MESSAGE_TYPE_ERROR:
            reply = .refused(text(g_dbus_message_get_error_name(message)) ?? "no reason given")
        default: return
        }
        let call = g_dbus_message_get_reply_serial(message)
        let (identifier, isAlive) = state.withLock { state -> (String?, Bool) in
            if call == state.lastCall { state.lastOrderBeforeAnswer = state.lastOrder }
            let isAlive = state.isSilent
            state.isSilent = false
            guard let identifier = state.expected.removeValue(forKey: call) else {
                if call == state.lastCall { state.early = (call, reply) }
                return (nil, isAlive)
            }
            return (identifier, isAlive)
        }
        if let identifier { onAnswer(identifier, reply) }
        if isAlive { onSignOfLife() }
    }

    private func seeSignal(_ message: OpaquePointer) {
        guard let arrived = ServerSignal(message) else { return }
        let order = state.withLock { state -> UInt64 in
            var signal = arrived
            state.lastOrder += 1
            signal.order = state.lastOrder
            state.signals.append(signal)
            return state.lastOrder
        }
        onSignal(order)
    }

    private func text(_ pointer: UnsafePointer<CChar>?) -> String? { pointer.map { String(cString: $0) } }
}
