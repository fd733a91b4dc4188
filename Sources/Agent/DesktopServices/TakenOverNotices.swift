import BackgroundNotices
import CLibnotify

/// Notifications that an earlier process showed, and whose buttons are heard by their numbers. Used on the loop's thread only.
///
/// libnotify hears those alone that it has shown itself. Most servers tell everybody of a press and a closing.
final class TakenOverNotices {
    private var identifiers: [UInt32: String] = [:]
    /// Comes just before the press that it belongs to.
    private var tokens: [UInt32: String] = [:]
    private var signals: ServerSignals?

    var onActivated: ((_ identifier: String, _ serverID: UInt32, _ action: String, _ token: String?) -> Void)?
    var onClosed: ((_ identifier: String, _ serverID: UInt32, NoticeCloseReason) -> Void)?

    func hear(_ identifier: String, _ serverID: UInt32, on connection: OpaquePointer) {
        identifiers[serverID] = identifier
        if signals == nil { signals = ServerSignals(named: nil, on: connection) { [unowned self] in take($0) } }
    }

    /// `nil`: it is not one of these.
    func identifier(of serverID: UInt32) -> String? { identifiers[serverID] }

    /// Shown anew, or taken off the screen: whoever did that hears it.
    func forget(_ identifier: String) { identifiers = identifiers.filter { $0.value != identifier } }

    /// The server, or the bus, is gone.
    func forgetAll() {
        (identifiers, tokens) = ([:], [:])
        signals = nil
    }

    private func take(_ signal: ServerSignal) {
        guard let identifier = identifiers[signal.number] else { return }
        switch (signal.name, signal.argument) {
        case ("ActivationToken", .text(let token)): tokens[signal.number] = token
        case ("ActionInvoked", .text(let action)):
            onActivated?(identifier, signal.number, action, tokens.removeValue(forKey: signal.number))
        case ("NotificationClosed", .number(let reason)):
            identifiers[signal.number] = nil
            onClosed?(identifier, signal.number, NoticeCloseReason(rawValue: Int(reason)) ?? .undefined)
        default: break
        }
    }
}
