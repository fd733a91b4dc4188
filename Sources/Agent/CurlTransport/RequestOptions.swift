import CLibcurl
import TransferMachines

extension WireRequest {
    /// `true` if redirects are followed. libcurl keeps a custom method on every redirect, so a DELETE would delete the next
    /// address after a 303. For this reason, redirects are followed only for the methods that libcurl supports itself.
    var followsRedirects: Bool { maximumRedirects > 0 && ["GET", "HEAD", "POST", "PUT"].contains(method) }

    var scheme: String? {
        url.firstRange(of: "://").map { url[..<$0.lowerBound].lowercased() }
    }

    /// `true` if the address is an http or https address without blanks and control characters. libcurl would send such
    /// characters unchanged.
    var hasUsableURL: Bool {
        (scheme == "http" || scheme == "https") && !url.utf8.contains { $0 <= 32 || $0 == 127 }
    }

    /// `true` if a header contains a line break or an invalid name. A line break in a value would add another header to the
    /// request.
    var hasBrokenHeader: Bool {
        ([method] + headers.flatMap { [$0.name, $0.value] }).contains { text in
            text.utf8.contains { $0 == 10 || $0 == 13 || $0 == 0 }
        } || headers.contains { $0.name.isEmpty || $0.name.utf8.contains { $0 == 0x3A || $0 == 0x20 || $0 == 0x3B } }
    }
}

/// Sets the options of a clean easy handle for a request. RANGE and RESUME_FROM are never set, because libcurl does not check the
/// response to a range request. Instead, the machines of transfers send the header and check the response.
struct RequestOptions {
    let userAgent: String
    let certificateAuthorities: String?

    func apply(to attempt: RunningAttempt) {
        let easy = attempt.easy
        let request = attempt.request
        let secure = request.scheme == "https"
        applyConnection(to: easy, request)
        // An encrypted request must not continue without encryption after a redirect.
        set(easy, CURLOPT_REDIR_PROTOCOLS_STR, secure ? "https" : "http,https")
        set(easy, CURLOPT_FOLLOWLOCATION, request.followsRedirects ? 1 : 0)
        set(easy, CURLOPT_MAXREDIRS, request.maximumRedirects)
        set(easy, CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_2TLS))
        set(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1)
        set(easy, CURLOPT_USERAGENT, userAgent)
        set(easy, CURLOPT_BUFFERSIZE, 64 * 1024)
        if let limit = request.rateLimit {
            if attempt.sharedRate == nil {
                _ = clibcurl_set_offset(easy, CURLOPT_MAX_SEND_SPEED_LARGE, curl_off_t(max(1, limit)))
            }
            _ = clibcurl_set_offset(easy, CURLOPT_MAX_RECV_SPEED_LARGE, curl_off_t(max(1, limit)))
            // libcurl applies the limit to the average over a buffer, so the rate is more even with small buffers.
            set(easy, CURLOPT_BUFFERSIZE, Int(min(16_384, max(1024, limit / 4))))
            set(easy, CURLOPT_UPLOAD_BUFFERSIZE, 16_384)
        }
        // An empty value accepts all compressions that this libcurl can decode.
        if request.decodesContent { set(easy, CURLOPT_ACCEPT_ENCODING, "") }
        if let credential = request.credential {
            set(easy, CURLOPT_HTTPAUTH, credential.isDigest ? 2 : 1)
            // One additional redirect is allowed, because libcurl counts the response to a challenge as a redirect.
            if credential.isDigest { set(easy, CURLOPT_MAXREDIRS, request.maximumRedirects + 1) }
            set(easy, CURLOPT_USERNAME, credential.user)
            set(easy, CURLOPT_PASSWORD, credential.password)
        }
        // Many requests to a host share one connection if the server supports HTTP/2.
        if secure { set(easy, CURLOPT_PIPEWAIT, 1) }
        applyMethod(attempt)
        applyHeaders(attempt)
        applyCallbacks(attempt)
    }

    /// Sets the options for the connection to the server and for the verification of the server. Every kind of request uses these
    /// options.
    func applyConnection(to easy: UnsafeMutableRawPointer, _ request: WireRequest) {
        set(easy, CURLOPT_NOSIGNAL, 1)
        // Without this option, an attempt could not end during its name resolution, and would block all other attempts.
        set(easy, CURLOPT_QUICK_EXIT, 1)
        set(easy, CURLOPT_URL, request.url)
        set(easy, CURLOPT_PROTOCOLS_STR, "http,https")
        switch request.leastTLS {
        case .v10: set(easy, CURLOPT_SSLVERSION, Int(CURL_SSLVERSION_TLSv1_0))
        case .v11: set(easy, CURLOPT_SSLVERSION, Int(CURL_SSLVERSION_TLSv1_1))
        case .v12: set(easy, CURLOPT_SSLVERSION, Int(CURL_SSLVERSION_TLSv1_2))
        case .v13: set(easy, CURLOPT_SSLVERSION, Int(CURL_SSLVERSION_TLSv1_3))
        case nil: break
        }
        set(easy, CURLOPT_SSL_VERIFYPEER, 1)
        set(easy, CURLOPT_SSL_VERIFYHOST, 2)
        if let certificateAuthorities { set(easy, CURLOPT_CAINFO, certificateAuthorities) }
        if let file = request.authorityFile {
            set(easy, CURLOPT_CAINFO, file)
            // This option prevents the use of the system's folder of certificate authorities.
            _ = clibcurl_set_pointer(easy, CURLOPT_CAPATH, nil)
            // With this option, libcurl does not cache the certificates, so a replaced file is read at the next connection.
            set(easy, CURLOPT_CA_CACHE_TIMEOUT, 0)
        }
        set(easy, CURLOPT_CONNECTTIMEOUT_MS, max(1, Int(min(request.connectTimeout, 86_400) * 1000)))
    }

    /// Sets the options of a connection on which the caller uses another protocol than HTTP. If a proxy is used, the connection
    /// is a tunnel through the proxy. HTTP/2 is never used.
    func applyBareConnection(to easy: UnsafeMutableRawPointer, _ request: WireRequest) {
        applyConnection(to: easy, request)
        set(easy, CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_1_1))
        set(easy, CURLOPT_HTTPPROXYTUNNEL, 1)
        set(easy, CURLOPT_CONNECT_ONLY, 1)
    }

    private func applyMethod(_ attempt: RunningAttempt) {
        let easy = attempt.easy
        let method = attempt.request.method
        let length = attempt.byteCount
        switch method {
        case "GET" where length == nil:
            set(easy, CURLOPT_HTTPGET, 1)
        case "HEAD":
            set(easy, CURLOPT_NOBODY, 1)
        case "POST":
            // libcurl's option UPLOAD with a custom method is not used here. If a redirect requires a change from POST to GET,
            // libcurl changes only a real POST.
            set(easy, CURLOPT_POST, 1)
            _ = clibcurl_set_offset(easy, CURLOPT_POSTFIELDSIZE_LARGE, curl_off_t(length ?? 0))
        case "PUT":
            set(easy, CURLOPT_UPLOAD, 1)
            _ = clibcurl_set_offset(easy, CURLOPT_INFILESIZE_LARGE, curl_off_t(length ?? 0))
        default:
            if let length {
                set(easy, CURLOPT_UPLOAD, 1)
                _ = clibcurl_set_offset(easy, CURLOPT_INFILESIZE_LARGE, curl_off_t(length))
            }
            set(easy, CURLOPT_CUSTOMREQUEST, method)
        }
        // If a reused connection is dead, libcurl sends the request again on another connection. A new connection prevents such a
        // repetition. Only the agent decides whether a request with side effects is repeated.
        if !["GET", "HEAD", "OPTIONS", "PROPFIND"].contains(method) { set(easy, CURLOPT_FRESH_CONNECT, 1) }
    }

    private func applyHeaders(_ attempt: RunningAttempt) {
        let hasBody = attempt.byteCount != nil
        var lines: [String] = []
        var names: Set<String> = []
        for field in attempt.request.headers {
            let name = field.name.lowercased()
            // The source of the body determines the length. A second length from the app could contradict this length.
            if hasBody, name == "content-length" || name == "transfer-encoding" { continue }
            names.insert(name)
            // In libcurl, a semicolon marks a header without a value. With a colon, libcurl would remove the header.
            lines.append(field.value.isEmpty ? "\(field.name);" : "\(field.name): \(field.value)")
        }
        // In HTTP/1.1, a body of unknown length is sent in chunks. In HTTP/2, libcurl removes this header.
        if attempt.byteCount.map({ $0 < 0 }) == true { lines.append("Transfer-Encoding: chunked") }
        // libcurl's `Expect: 100-continue` is removed. If a server ignores this header, each request takes one second longer.
        if !names.contains("expect") { lines.append("Expect:") }
        // libcurl's default content type is removed, because it declares every POST as a form.
        if attempt.request.method == "POST", !names.contains("content-type") { lines.append("Content-Type:") }
        for line in lines { attempt.headerList = curl_slist_append(attempt.headerList, line) ?? attempt.headerList }
        _ = clibcurl_set_list(attempt.easy, CURLOPT_HTTPHEADER, attempt.headerList)
    }

    private func applyCallbacks(_ attempt: RunningAttempt) {
        let easy = attempt.easy
        // The reference is not retained, because the loop keeps the attempt until libcurl released the handle.
        let context = Unmanaged.passUnretained(attempt).toOpaque()
        for option in [
            CURLOPT_WRITEDATA, CURLOPT_HEADERDATA, CURLOPT_READDATA, CURLOPT_XFERINFODATA, CURLOPT_SEEKDATA,
            CURLOPT_PREREQDATA,
        ] {
            _ = clibcurl_set_pointer(easy, option, context)
        }
        _ = clibcurl_set_pointer(easy, CURLOPT_ERRORBUFFER, attempt.errorText)
        _ = clibcurl_set_data_callback(easy, CURLOPT_WRITEFUNCTION) { bytes, size, count, context in
            let buffer = UnsafeRawBufferPointer(start: bytes, count: size * count)
            let attempt = RunningAttempt.from(context)
            if attempt.pausesForSink() { return Int(CURL_WRITEFUNC_PAUSE) }
            return attempt.receive(body: buffer) ? size * count : Int(CURL_WRITEFUNC_ERROR)
        }
        _ = clibcurl_set_data_callback(easy, CURLOPT_HEADERFUNCTION) { bytes, size, count, context in
            let buffer = UnsafeRawBufferPointer(start: bytes, count: size * count)
            return RunningAttempt.from(context).receive(headerLine: buffer) ? size * count : Int(CURL_WRITEFUNC_ERROR)
        }
        _ = clibcurl_set_data_callback(easy, CURLOPT_READFUNCTION) { bytes, size, count, context in
            let buffer = UnsafeMutableRawBufferPointer(start: bytes, count: size * count)
            let attempt = RunningAttempt.from(context)
            if attempt.pausesForSource() || attempt.pausesForRate(buffer.count) { return Int(CURL_READFUNC_PAUSE) }
            return attempt.fill(buffer) ?? Int(CURL_READFUNC_ABORT)
        }
        _ = clibcurl_set_seek_callback(easy) { context, offset, origin in
            origin == 0 && RunningAttempt.from(context).rewind(to: Int64(offset)) ? CURL_SEEKFUNC_OK : CURL_SEEKFUNC_FAIL
        }
        set(easy, CURLOPT_NOPROGRESS, 0)
        _ = clibcurl_set_progress_callback(easy) { context, _, downloaded, _, uploaded in
            RunningAttempt.from(context).counted(received: Int64(downloaded), sent: Int64(uploaded))
            return 0
        }
        _ = clibcurl_set_tls_callback(easy) { _, context, _ in
            CloseNotify.listen(to: context)
            return CURLE_OK
        }
        _ = clibcurl_set_prerequest_callback(easy) { context, _, _, _, _ in
            RunningAttempt.from(context).connected()
            return Int32(CURL_PREREQFUNC_OK)
        }
    }

    private func set(_ easy: UnsafeMutableRawPointer, _ option: CURLoption, _ value: Int) {
        _ = clibcurl_set_long(easy, option, value)
    }

    private func set(_ easy: UnsafeMutableRawPointer, _ option: CURLoption, _ value: String) {
        _ = clibcurl_set_string(easy, option, value)
    }
}

extension RunningAttempt {
    static func from(_ context: UnsafeMutableRawPointer?) -> RunningAttempt {
        guard let context else { fatalError("libcurl called a callback without the context of the transfer") }
        return Unmanaged<RunningAttempt>.fromOpaque(context).takeUnretainedValue()
    }
}
