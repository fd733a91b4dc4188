import BackgroundNotices
import CLibnotify

/// One call of the desktop portal. Used on the loop's thread only, and waits for nobody there.
///
/// A portal that froze has the call in its queue and answers when it goes on: an answer is waited for as long as the bus lives.
final class PortalCall {
    /// What becomes of a call.
    enum Outcome {
        /// Nobody has answered in time. Its answer may come yet, and then is told, too.
        case isLate
        /// The caller of this may read it, and does not let go of it.
        case answered(OpaquePointer)
        case failed(PresenterFailure)
    }

    /// Seconds until a call is late: as long as GLib waits for others.
    private static let patience: guint = 25

    private let tell: (_ outcome: Outcome, _ wasLate: Bool) -> Void
    private var timer: UnsafeMutablePointer<GSource>?
    private var wasLate = false

    private init(_ tell: @escaping (Outcome, Bool) -> Void) { self.tell = tell }

    /// - Parameters:
    ///   - parameters: taken over.
    ///   - mayStart: the bus may start a portal for it.
    ///   - tell: called once with an answer or a failure, and perhaps before that as late; not any more once `connection` is closed by us.
    static func send(
        _ method: String, _ parameters: OpaquePointer?, of interface: String = NotificationPortal.interface,
        with files: UnsafeMutablePointer<GUnixFDList>? = nil, on connection: OpaquePointer, mayStart: Bool,
        tell: @escaping (_ outcome: Outcome, _ wasLate: Bool) -> Void
    ) {
        let call = PortalCall(tell)
        call.startTimer()
        g_dbus_connection_call_with_unix_fd_list(
            connection, NotificationPortal.busName, NotificationPortal.path, interface, method, parameters, nil,
            mayStart ? G_DBUS_CALL_FLAGS_NONE : G_DBUS_CALL_FLAGS_NO_AUTO_START, gint.max, files, nil,
            { source, result, data in
                guard let source, let data else { return }
                Unmanaged<PortalCall>.fromOpaque(data).takeRetainedValue().finish(OpaquePointer(source), result)
            }, Unmanaged.passRetained(call).toOpaque())
    }

    private func startTimer() {
        timer = g_timeout_source_new_seconds(Self.patience)
        g_source_set_callback(
            timer,
            { data in
                if let data { Unmanaged<PortalCall>.fromOpaque(data).takeUnretainedValue().beLate() }
                return 0
            }, Unmanaged.passUnretained(self).toOpaque(), nil)
        g_source_attach(timer, g_main_context_get_thread_default())
    }

    private func stopTimer() {
        guard let timer else { return }
        self.timer = nil
        g_source_destroy(timer)
        g_source_unref(timer)
    }

    private func beLate() {
        stopTimer()
        wasLate = true
        tell(.isLate, false)
    }

    private func finish(_ connection: OpaquePointer, _ result: OpaquePointer?) {
        stopTimer()
        var error: UnsafeMutablePointer<GError>?
        if let answer = g_dbus_connection_call_with_unix_fd_list_finish(connection, nil, result, &error) {
            defer { g_variant_unref(answer) }
            tell(.answered(answer), wasLate)
        } else {
            tell(.failed(PresenterFailure(consuming: error)), wasLate)
        }
    }
}
