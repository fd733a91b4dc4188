import CLibcurl
import Glibc
import TransferMachines

extension CURLcode {
    var code: Int32 { Int32(bitPattern: rawValue) }
}

extension CURLMcode {
    var code: Int32 { rawValue }
}

extension RunningAttempt {
    /// Returns libcurl's result as a ``WireFailure``. Returns `nil` if the response is complete.
    func failure(for code: CURLcode) -> WireFailure? {
        if let stop { return stop }
        if code != CURLE_OK, head == nil, let status = proxyRefusal { return .proxyRefused(status) }
        switch code {
        case CURLE_OK where isCutWithoutCloseNotify:
            return .connectionLost
        case CURLE_OK:
            return head == nil ? .badAnswer("no headers") : nil
        case CURLE_RECV_ERROR where isAnsweredByItsHead:
            return nil
        case CURLE_PARTIAL_FILE, CURLE_GOT_NOTHING, CURLE_SEND_ERROR, CURLE_RECV_ERROR, CURLE_HTTP2_STREAM, CURLE_HTTP2:
            return .connectionLost
        case CURLE_UNSUPPORTED_PROTOCOL:
            // The scheme of the first address was already checked. If no redirect followed, this error means that the response is
            // not HTTP.
            return hasSeenRedirect ? .redirectToOtherScheme : .badAnswer("not HTTP")
        case CURLE_URL_MALFORMAT:
            return hasSeenRedirect ? .badAnswer("the server redirected to a malformed address") : .unsupportedURL
        case CURLE_TOO_MANY_REDIRECTS:
            return .tooManyRedirects
        case CURLE_FILESIZE_EXCEEDED:
            return .bodyTooLarge
        case CURLE_WEIRD_SERVER_REPLY, CURLE_BAD_CONTENT_ENCODING:
            return .badAnswer(words(for: code))
        case CURLE_SSL_CACERT_BADFILE:
            guard let file = request.authorityFile else { return WireFailure(connecting: code, words(for: code)) }
            return .authoritiesUnreadable(path: file)
        case CURLE_OUT_OF_MEMORY where head == nil:
            // libcurl 7.88 reports this error for a header line above 100 KB. If the memory were exhausted, Swift would not reach
            // this line.
            return .badAnswer("a header line is too long")
        case CURLE_WRITE_ERROR, CURLE_READ_ERROR, CURLE_ABORTED_BY_CALLBACK, CURLE_SEND_FAIL_REWIND:
            return .stoppedByOwner
        default:
            return WireFailure(connecting: code, words(for: code))
        }
    }

    /// The status of the response in which a proxy refused to connect to the server. `nil` if no proxy refused a connection.
    private var proxyRefusal: Int? {
        var status = 0
        _ = clibcurl_get_long(easy, CURLINFO_HTTP_CONNECTCODE, &status)
        return status >= 300 ? status : nil
    }

    /// `true` if the response headers are sufficient for a success although the connection ended without close_notify. Since
    /// version 8.14, libcurl always reports an error for such a connection. However, many servers send no close_notify, and the
    /// headers contain the result of an upload. If the response counted as lost, the upload would be repeated.
    private var isAnsweredByItsHead: Bool {
        guard let head, request.method != "GET", head.url.lowercased().hasPrefix("https:") else { return false }
        return head.hasNoLength
    }

    /// Returns libcurl's detailed message for an error. Only messages about certificates and syntax are used, because other
    /// messages may contain an address.
    private func words(for code: CURLcode) -> String {
        let detail = String(cString: errorText)
        return detail.isEmpty ? String(cString: curl_easy_strerror(code)) : String(detail.prefix(200))
    }
}

extension WireFailure {
    /// Creates a failure from an error that prevented the connection.
    ///
    /// - Parameter words: the detailed message of libcurl.
    init(connecting code: CURLcode, _ words: String) {
        switch code {
        case CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY:
            self = .couldNotResolveHost
        case CURLE_COULDNT_CONNECT, CURLE_PROXY, CURLE_INTERFACE_FAILED:
            self = .couldNotConnect
        case CURLE_OPERATION_TIMEDOUT:
            // libcurl's time limit is used only for connecting, so this error means that the connection was too slow.
            self = .timedOutConnecting
        case CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CACERT_BADFILE, CURLE_SSL_ISSUER_ERROR,
            CURLE_SSL_INVALIDCERTSTATUS, CURLE_SSL_PINNEDPUBKEYNOTMATCH:
            self = .tlsUntrusted(words)
        default:
            self = .other(code: code.code, message: String(cString: curl_easy_strerror(code)))
        }
    }
}
