import BackgroundNotices
import CLibnotify

/// Notifications that an earlier process showed, and whose buttons are heard by their numbers. Used on the loop's thread only.
///
/// libnotify hears those alone that it has shown itself. Most servers tell everybody of a press and a closing.
final class TakenOverNotices {
    private var identifiers: [UInt32: String] = [:]
    /// Comes just before the press that it belongs to.
    private var tokens: [UInt32: String] = [:]
    private var subscription: (number: guint, connection: OpaquePointer)?

    var onActivated: ((_ identifier: String, _ serverID: UInt32, _ action: String, _ token: String?) -> Void)?
    var onClosed: ((_ identifier: String, _ serverID: UInt32, NoticeCloseReason) -> Void)?

    func hear(_ identifier: String, _ serverID: UInt32, on connection: OpaquePointer) {
        identifiers[serverID] = identifier
        guard subscription == nil else { return }
        let number = g_dbus_connection_signal_subscribe(
            connection, PresenterServer.busName, PresenterServer.busName, nil, "/org/freedesktop/Notifications", nil,
            G_DBUS_SIGNAL_FLAGS_NONE,
            { _, _, _, _, signal, parameters, data in
                guard let data, let signal, let parameters else { return }
                Unmanaged<TakenOverNotices>.fromOpaque(data).takeUnretainedValue().take(String(cString: signal), parameters)
            }, Unmanaged.passUnretained(self).toOpaque(), nil)
        subscription = (number, connection)
    }

    /// `nil`: it is not one of these.
    func identifier(of serverID: UInt32) -> String? { identifiers[serverID] }

    /// Shown anew, or taken off the screen: whoever did that hears it.
    func forget(_ identifier: String) { identifiers = identifiers.filter { $0.value != identifier } }

    /// The server, or the bus, is gone.
    func forgetAll() {
        (identifiers, tokens) = ([:], [:])
        if let subscription { g_dbus_connection_signal_unsubscribe(subscription.connection, subscription.number) }
        subscription = nil
    }

    private func take(_ signal: String, _ parameters: OpaquePointer) {
        let type = String(cString: g_variant_get_type_string(parameters))
        guard type == "(us)" || type == "(uu)", let first = g_variant_get_child_value(parameters, 0),
            let second = g_variant_get_child_value(parameters, 1)
        else { return }
        defer {
            g_variant_unref(first)
            g_variant_unref(second)
        }
        let number = g_variant_get_uint32(first)
        guard let identifier = identifiers[number] else { return }
        switch (signal, type) {
        case ("ActivationToken", "(us)"): tokens[number] = String(cString: g_variant_get_string(second, nil))
        case ("ActionInvoked", "(us)"):
            let action = String(cString: g_variant_get_string(second, nil))
            onActivated?(identifier, number, action, tokens.removeValue(forKey: number))
        case ("NotificationClosed", "(uu)"):
            identifiers[number] = nil
            let reason = Int(g_variant_get_uint32(second))
            onClosed?(identifier, number, NoticeCloseReason(rawValue: reason) ?? .undefined)
        default: break
        }
    }
}
