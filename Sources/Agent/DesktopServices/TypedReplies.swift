import CLibnotify

/// Hears what a person types into a notification. Used on the loop's thread only.
///
/// A signal that is in no version of the specification and that libnotify does not know; Plasma sends it to whoever showed the notification.
final class TypedReplies {
    private var signals: ServerSignals?

    var onReply: ((_ serverID: UInt32, _ text: String) -> Void)?

    func listen(on connection: OpaquePointer) {
        guard signals == nil else { return }
        signals = ServerSignals(named: "NotificationReplied", on: connection) { [unowned self] signal in
            if case .text(let text) = signal.argument { onReply?(signal.number, text) }
        }
    }

    func stop() { signals = nil }
}
