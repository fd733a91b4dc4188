import BackgroundLedger
import BackgroundRuntime
import BackgroundScheduling
import Foundation
import FoundationNetworking
import Spool
import TransferMachines

/// A request in the form in which the request is sent. The key of a transfer is computed from this form.
struct WireOrder: Sendable {
    var method: String
    var url: String
    var headers: [HeaderField]
    var body: Data?
    var idleTimeout: Double
    var allowsCellular: Bool
    var allowsExpensive: Bool
    var allowsConstrained: Bool

    /// - Parameter streams: `true` if the body may be a stream, which the caller then sends.
    /// - Throws: `URLError`. The code is `.unsupportedURL` if the scheme is not http or https, or if a proxy is configured. In a
    ///   background session, the code is also `.unsupportedURL` if the body is a stream or the agent cannot make the request. The
    ///   code is `.badURL` for an invalid port or method, and for a header that cannot be sent. The code is
    ///   `.dataLengthExceedsMaximum` for a GET request with a body, as in iOS 13 and later.
    init(
        _ request: URLRequest, _ configuration: URLSessionConfiguration, defaultMethod: String = "GET", streams: Bool = false
    ) throws {
        guard let url = request.url, let scheme = url.scheme?.lowercased(), scheme == "http" || scheme == "https",
            url.host?.isEmpty == false
        else { throw URLError(.unsupportedURL) }
        if configuration.asksForProxy {
            throw URLError(
                .unsupportedURL,
                userInfo: [
                    NSLocalizedDescriptionKey:
                        "connectionProxyDictionary is not supported, so the request would not use that proxy. "
                        + "Set https_proxy in the environment."
                ])
        }
        if let port = url.port, !(0...65_535).contains(port) { throw URLError(.badURL) }
        if configuration.identifier != nil { try Self.refuseWhatNoAgentCan(request, configuration) }
        guard streams || request.httpBodyStream == nil else {
            throw URLError(
                .unsupportedURL,
                userInfo: [NSLocalizedDescriptionKey: "a request body must be data or a file, not a stream"])
        }
        var fields = Self.headers(request, configuration)
        // Names are compared in lower case, because Foundation can change upper and lower case of header names.
        let ours = [RequestProperties.header, URLRequest.marksHeader].map { $0.lowercased() }
        fields = fields.filter { !ours.contains($0.key.lowercased()) }
        headers = fields.map { HeaderField($0.key, $0.value) }.sorted { $0.name < $1.name }
        // Without this check, the agent would try to send a request with such a header again and again, for a week.
        if let field = headers.first(where: { !$0.canBeSent }) {
            throw URLError(
                .badURL,
                userInfo: [
                    NSLocalizedDescriptionKey:
                        "The header \"\(field.name)\" cannot be sent, because its name or its value is not valid."
                ])
        }
        let asked = request.httpMethod ?? ""
        method = ["", "GET"].contains(asked) ? defaultMethod : asked
        guard HeaderField.isToken(method) else {
            throw URLError(
                .badURL,
                userInfo: [
                    NSLocalizedDescriptionKey:
                        "The method of the request cannot be sent, because the method has an invalid character."
                ])
        }
        self.url = url.absoluteString
        body = request.httpBody
        guard method != "GET" || body?.isEmpty != false && request.httpBodyStream == nil else {
            throw URLError(.dataLengthExceedsMaximum)
        }
        if method == "POST", body?.isEmpty == false, !headers.contains(where: { $0.name.lowercased() == "content-type" }) {
            headers.append(HeaderField("Content-Type", "application/x-www-form-urlencoded"))
        }
        idleTimeout = Self.idleTimeout(request, configuration)
        allowsCellular = request.allowsCellularAccess
        (allowsExpensive, allowsConstrained) = (request.allowsExpensiveNetworkAccess, request.allowsConstrainedNetworkAccess)
    }

    /// Returns the headers of the request together with the headers that the configuration adds.
    static func headers(_ request: URLRequest, _ configuration: URLSessionConfiguration) -> [String: String] {
        var fields = request.allHTTPHeaderFields ?? [:]
        let named = Set(fields.keys.map { $0.lowercased() })
        for (name, value) in configuration.httpAdditionalHeaders ?? [:] where !named.contains("\(name)".lowercased()) {
            fields["\(name)"] = "\(value)"
        }
        return fields
    }

    /// Returns the maximum number of seconds in which no byte is transferred. If the request has the default timeout of 60
    /// seconds, the timeout of the configuration is used.
    static func idleTimeout(_ request: URLRequest, _ configuration: URLSessionConfiguration) -> Double {
        let longest = TransferRecord.longestIdle
        let usual = URLSessionConfiguration.seconds(configuration.timeoutIntervalForRequest, default: 60, atMost: longest)
        return request.timeoutInterval == 60
            ? usual : URLSessionConfiguration.seconds(request.timeoutInterval, default: usual, atMost: longest)
    }

    /// Throws an error if the agent cannot send the request as the configuration requires. Without this check, the agent would
    /// send the request in a different way.
    private static func refuseWhatNoAgentCan(_ request: URLRequest, _ configuration: URLSessionConfiguration) throws {
        for kind in configuration.protocolClasses ?? [] {
            guard let kind = kind as? URLProtocol.Type else { throw OrdinarySession.noProtocol(kind) }
            if kind.canInit(with: request) {
                throw URLError(
                    .unsupportedURL,
                    userInfo: [
                        NSLocalizedDescriptionKey:
                            "\(kind) cannot respond in a background session, because the agent sends the requests. "
                            + "Use an ordinary session."
                    ])
            }
        }
        if configuration.tlsMinimumSupportedProtocolVersion == .TLSv13 {
            throw URLError(
                .unsupportedURL,
                userInfo: [
                    NSLocalizedDescriptionKey: "A background session cannot require TLS 1.3. Use an ordinary session."
                ])
        }
    }

    /// Returns the key of the request. Equal requests of a session have equal keys.
    func key(session: String, bodyDigest: String? = nil) -> String {
        let digest = bodyDigest ?? body.map(FileDigest.sha256(of:)) ?? ""
        let parts = [session, method, url, digest] + headers.map { "\($0.name.lowercased()):\($0.value)" }
        return FileDigest.sha256(of: Data(parts.joined(separator: "\n").utf8))
    }

    /// Returns a new transfer record for the request.
    func record(
        _ configuration: URLSessionConfiguration, session: String, key: String, kind: TransferRecord.Kind, now: Date
    ) -> TransferRecord {
        var record = TransferRecord(
            session: session, key: key, kind: kind, method: method, url: url, headers: headers, now: now)
        record.idleTimeout = idleTimeout
        record.resourceTimeout = min(configuration.resourcePatience, TransferRecord.longestIdle)
        record.patience = configuration.resourcePatience
        record.maximumBodyBytes = configuration.maximumBodyBytes
        record.rateLimit = configuration.maximumBytesPerSecond
        record.hostLimit = max(1, configuration.httpMaximumConnectionsPerHost)
        record.launchesApp = configuration.sessionSendsLaunchEvents
        if configuration.isDiscretionary { record.needs.formUnion([.externalPower, .unmetered]) }
        if !configuration.allowsExpensiveNetworkAccess || !allowsExpensive { record.needs.insert(.unmetered) }
        if !configuration.allowsConstrainedNetworkAccess || !allowsConstrained { record.needs.insert(.unconstrained) }
        if !configuration.allowsCellularAccess || !allowsCellular { record.needs.insert(.notCellular) }
        return record
    }
}

extension HeaderField {
    /// `true` if HTTP permits the header: the name is a token, and the value has one line (RFC 9110 §5).
    fileprivate var canBeSent: Bool {
        Self.isToken(name) && !value.utf8.contains { [0, 10, 13].contains($0) }
    }

    fileprivate static func isToken(_ text: String) -> Bool { !text.isEmpty && text.utf8.allSatisfy { tokenBytes.contains($0) } }

    private static let tokenBytes = Set(
        "!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz".utf8)
}

extension URLRequest {
    /// Creates a request, or returns `nil` if the URL is not valid.
    init?(method: String, url: String, headers: [HeaderField]) {
        guard let url = URL(string: url) else { return nil }
        self.init(url: url)
        httpMethod = method
        for header in headers { addValue(header.value, forHTTPHeaderField: header.name) }
    }
}

/// A response with a suggested file name. Foundation suggests only the name "Unknown" for many responses.
private final class NamedResponse: HTTPURLResponse, @unchecked Sendable {  // because the base class is unchecked Sendable
    override var suggestedFilename: String? {
        let headers = allHeaderFields.map { HeaderField("\($0.key)", "\($0.value)") }
        return SuggestedName.of(ResponseHead(status: statusCode, headers: headers, url: url?.absoluteString ?? ""))
    }
}

extension ResponseHead {
    /// Returns the response as Foundation represents it. If several headers have the same name, one field contains all values.
    ///
    /// - Parameter asked: the requested address, which is used if the response has no valid address.
    func response(asked: String) -> HTTPURLResponse? {
        guard let url = URL(string: url) ?? URL(string: asked) else { return nil }
        return NamedResponse(
            url: url, statusCode: status, httpVersion: "HTTP/1.1",
            headerFields: Dictionary(headers.map { ($0.name, $0.value) }, uniquingKeysWith: { $0 + ", " + $1 }))
    }
}

extension TransferRecord {
    var request: URLRequest? { URLRequest(method: method, url: url, headers: headers) }

    var response: HTTPURLResponse? {
        guard var head else { return nil }
        // The server may have sent the file in several partial responses, with status 206. If the app requested the complete
        // file, the app receives status 200. The app receives status 206 only if it requested a part of the file.
        if head.status == 206, !headers.contains(where: { $0.name.lowercased() == "range" }) {
            head.status = 200
            head.headers.removeAll { ["content-range", "content-length"].contains($0.name.lowercased()) }
            if let total = bytesTotal { head.headers.append(HeaderField("Content-Length", "\(total)")) }
        }
        return head.response(asked: url)
    }

    /// The error that an async method throws, or that the delegate receives. If the agent keeps the partial file, the error
    /// contains resume data.
    var urlError: URLError {
        var info: [String: Any] = [NSLocalizedDescriptionKey: errorMessage ?? "the transfer was \(state.rawValue)"]
        if keptUntil != nil, let resume = ResumeData(self) { info[NSURLSessionDownloadTaskResumeData] = resume.data }
        let code = errorCode.flatMap(URLError.Code.init(rawValue:)) ?? (state == .cancelled ? .cancelled : .unknown)
        return URLError(code, userInfo: info).concerning(URL(string: url))
    }

    /// The metrics of the transfer, computed from the values in the ledger.
    var metrics: URLSessionTaskMetrics {
        let end = max(finishedAt ?? AppRuntime.shared.now, createdAt)
        let transaction = request.map { request in
            URLSessionTaskTransactionMetrics(
                request: request, response: response, fetchStartDate: createdAt, responseEndDate: end,
                received: kind == .download ? bytesOnWire : 0, sent: kind == .upload ? bytesOnWire : 0)
        }
        return URLSessionTaskMetrics(
            taskInterval: DateInterval(start: createdAt, end: end), attemptCount: attempts,
            transactions: transaction.map { [$0] } ?? [])
    }

    /// `true` if a response arrived, for any HTTP status, so the delegate receives no error.
    var hasAnswer: Bool { state == .completed || kind == .upload && upload?.method == .plain && state == .failed && head != nil }
}

extension URLError {
    /// The data with which ``URLSession/downloadTask(withResumeData:)`` continues the download. The value is `nil` if the
    /// download cannot be continued.
    public var downloadTaskResumeData: Data? { userInfo[NSURLSessionDownloadTaskResumeData] as? Data }

    /// The data with which an upload continues. The value is always `nil`, because uploads do not provide resume data.
    public var uploadTaskResumeData: Data? { nil }
}
