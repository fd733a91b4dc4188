import CLibcurl
import COpenSSL
import Synchronization

/// Hears whether a server sent TLS's close_notify.
///
/// RFC 9112, 9.8: a body without a length, over TLS, is whole only where that was said; or whoever is on the way could shorten a file
/// unseen. libcurl before 8.14 does not mind, and has let go of the connection when it says that all is well. So OpenSSL is listened to.
enum CloseNotify {
    /// Lets go of the connection with itself.
    final class Watch {
        private let connection: UInt

        fileprivate init(_ connection: UInt) {
            self.connection = connection
            CloseNotify.heard.withLock { $0[connection] = false }
        }

        deinit { CloseNotify.heard.withLock { _ = $0.removeValue(forKey: connection) } }

        var wasHeard: Bool { CloseNotify.heard.withLock { $0[connection] == true } }
    }

    /// By the address of the connection, only those that are watched: in HTTP/1 each carries one answer at a time.
    private static let heard = Mutex<[UInt: Bool]>([:])

    /// - Parameter context: OpenSSL's, before any connection of it.
    static func listen(to context: UnsafeMutableRawPointer?) {
        // This is what OpenSSL calls for each alert; the lower byte of its value says which.
        SSL_CTX_set_info_callback(context.map { OpaquePointer($0) }) { connection, event, value in
            guard event == SSL_CB_READ_ALERT, value & 0xFF == SSL_AD_CLOSE_NOTIFY else { return }
            let connection = UInt(bitPattern: connection)
            CloseNotify.heard.withLock { heard in if heard[connection] != nil { heard[connection] = true } }
        }
    }

    /// - Parameter easy: in the midst of its transfer, before its body.
    /// - Returns: `nil` where the connection's end is not the body's: without TLS nobody sends close_notify, HTTP/2 ends bodies itself.
    static func watch(_ easy: UnsafeMutableRawPointer) -> Watch? {
        var version = 0
        _ = clibcurl_get_long(easy, CURLINFO_HTTP_VERSION, &version)
        guard version < CURL_HTTP_VERSION_2_0, let connection = clibcurl_get_openssl(easy) else { return nil }
        return Watch(UInt(bitPattern: connection))
    }
}
