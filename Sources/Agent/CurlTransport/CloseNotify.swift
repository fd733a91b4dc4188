import CLibcurl
import COpenSSL
import Synchronization

/// Records whether a server sent the TLS alert close_notify.
///
/// Over TLS, a body without a length is complete only if close_notify arrived (RFC 9112, 9.8). Without this check, an attacker on
/// the network could shorten a file. libcurl before 8.14 ignores a missing close_notify. Such a version of libcurl also releases
/// the connection before it reports success. For these reasons, an OpenSSL callback records the alert.
enum CloseNotify {
    /// Watches a connection until this object is deallocated.
    final class Watch {
        private let connection: UInt

        fileprivate init(_ connection: UInt) {
            self.connection = connection
            CloseNotify.received.withLock { $0[connection] = false }
        }

        deinit { CloseNotify.received.withLock { _ = $0.removeValue(forKey: connection) } }

        var wasReceived: Bool { CloseNotify.received.withLock { $0[connection] == true } }
    }

    /// The watched connections, by the memory address of the connection. In HTTP/1, a connection transfers one response at a
    /// time.
    private static let received = Mutex<[UInt: Bool]>([:])

    /// Sets OpenSSL's callback for TLS alerts.
    ///
    /// - Parameter context: OpenSSL's context before it has a connection.
    static func listen(to context: UnsafeMutableRawPointer?) {
        // OpenSSL calls this function for each alert. The lower byte of the value is the type of the alert.
        SSL_CTX_set_info_callback(context.map { OpaquePointer($0) }) { connection, event, value in
            guard event == SSL_CB_READ_ALERT, value & 0xFF == SSL_AD_CLOSE_NOTIFY else { return }
            let connection = UInt(bitPattern: connection)
            CloseNotify.received.withLock { heard in if heard[connection] != nil { heard[connection] = true } }
        }
    }

    /// Starts to watch for the alert close_notify on a connection.
    ///
    /// - Parameter easy: a handle whose transfer runs and whose body has not begun.
    /// - Returns: `nil` if close_notify is not needed to find the end of the body. Without TLS, servers send no close_notify.
    ///   HTTP/2 has its own mark for the end of a body.
    static func watch(_ easy: UnsafeMutableRawPointer) -> Watch? {
        var version = 0
        _ = clibcurl_get_long(easy, CURLINFO_HTTP_VERSION, &version)
        guard version < CURL_HTTP_VERSION_2_0, let connection = clibcurl_get_openssl(easy) else { return nil }
        return Watch(UInt(bitPattern: connection))
    }
}
