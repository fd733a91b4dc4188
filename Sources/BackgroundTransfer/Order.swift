import BackgroundLedger
import BackgroundRuntime
import BackgroundScheduling
import Foundation
import FoundationNetworking
import TransferMachines

/// A request as it goes to the wire: what the key of a transfer is made of.
struct Order: Sendable {
    var method: String
    var url: String
    var headers: [HeaderField]
    var body: Data?
    var idleTimeout: Double
    var allowsCellular: Bool

    /// - Throws: `URLError`: `.unsupportedURL` for anything but http and https, and for a stream as a body in the background.
    init(_ request: URLRequest, _ configuration: URLSessionConfiguration, defaultMethod: String = "GET") throws {
        guard let url = request.url, let scheme = url.scheme?.lowercased(), scheme == "http" || scheme == "https",
            url.host?.isEmpty == false
        else { throw URLError(.unsupportedURL) }
        guard request.httpBodyStream == nil else {
            throw URLError(
                .unsupportedURL,
                userInfo: [NSLocalizedDescriptionKey: "bodies come from data and files, not from streams"])
        }
        var fields = request.allHTTPHeaderFields ?? [:]
        let named = Set(fields.keys.map { $0.lowercased() })
        for (name, value) in configuration.httpAdditionalHeaders ?? [:] where !named.contains("\(name)".lowercased()) {
            fields["\(name)"] = "\(value)"
        }
        headers = fields.map { HeaderField($0.key, $0.value) }.sorted { $0.name < $1.name }
        let asked = request.httpMethod ?? "GET"
        method = asked == "GET" ? defaultMethod : asked
        self.url = url.absoluteString
        body = request.httpBody
        idleTimeout = request.timeoutInterval == 60 ? configuration.timeoutIntervalForRequest : request.timeoutInterval
        allowsCellular = request.allowsCellularAccess
    }

    /// Equal requests of a session have equal keys.
    func key(session: String, bodyDigest: String? = nil) -> String {
        let digest = bodyDigest ?? body.map(FileDigest.sha256(of:)) ?? ""
        let parts = [session, method, url, digest] + headers.map { "\($0.name.lowercased()):\($0.value)" }
        return FileDigest.sha256(of: Data(parts.joined(separator: "\n").utf8))
    }

    /// A new row for it.
    func record(
        _ configuration: URLSessionConfiguration, session: String, key: String, kind: TransferRecord.Kind, now: Date
    ) -> TransferRecord {
        var record = TransferRecord(
            session: session, key: key, kind: kind, method: method, url: url, headers: headers, now: now)
        record.idleTimeout = idleTimeout
        record.resourceTimeout = configuration.timeoutIntervalForResource
        record.maximumBodyBytes = configuration.maximumBodyBytes
        record.rateLimit = configuration.maximumBytesPerSecond
        record.hostLimit = max(1, configuration.httpMaximumConnectionsPerHost)
        record.launchesApp = configuration.sessionSendsLaunchEvents
        if configuration.isDiscretionary { record.needs.formUnion([.externalPower, .unmetered]) }
        if !configuration.allowsExpensiveNetworkAccess { record.needs.insert(.unmetered) }
        if !configuration.allowsConstrainedNetworkAccess { record.needs.insert(.unconstrained) }
        if !configuration.allowsCellularAccess || !allowsCellular { record.needs.insert(.notCellular) }
        return record
    }
}

extension TransferRecord {
    var request: URLRequest? {
        guard let url = URL(string: url) else { return nil }
        var request = URLRequest(url: url)
        request.httpMethod = method
        for header in headers { request.addValue(header.value, forHTTPHeaderField: header.name) }
        return request
    }

    var response: HTTPURLResponse? {
        guard let head, let url = URL(string: head.url) ?? URL(string: self.url) else { return nil }
        var fields: [String: String] = [:]
        // Put together from several answers it is the whole all the same: a 206 is the app's business only if it asked for a part.
        let isWhole = head.status == 206 && !headers.contains { $0.name.lowercased() == "range" }
        for header in head.headers where !isWhole || !["content-range", "content-length"].contains(header.name.lowercased()) {
            let earlier = fields[header.name].map { $0 + ", " } ?? ""
            fields[header.name] = earlier + header.value
        }
        if isWhole, let total = bytesTotal { fields["Content-Length"] = "\(total)" }
        return HTTPURLResponse(url: url, statusCode: isWhole ? 200 : head.status, httpVersion: "HTTP/1.1", headerFields: fields)
    }

    /// The error of an awaited call or of a delegate; with resume data, where a part is kept.
    var urlError: URLError {
        var info: [String: Any] = [NSLocalizedDescriptionKey: errorMessage ?? "the transfer was \(state.rawValue)"]
        if let url = URL(string: url) {
            info[NSURLErrorFailingURLErrorKey] = url
        }
        if keptUntil != nil, let resume = ResumeData(self) { info[NSURLSessionDownloadTaskResumeData] = resume.data }
        let code = errorCode.flatMap(URLError.Code.init(rawValue:)) ?? (state == .cancelled ? .cancelled : .unknown)
        return URLError(code, userInfo: info)
    }

    /// An answer arrived, whatever its status: for a delegate that is no error.
    var hasAnswer: Bool { state == .completed || kind == .upload && upload?.method == .plain && state == .failed && head != nil }
}

extension URLError {
    /// What ``URLSession/downloadTask(withResumeData:)`` goes on from, if the download left a part that can be added to.
    public var downloadTaskResumeData: Data? { userInfo[NSURLSessionDownloadTaskResumeData] as? Data }

    /// Always `nil`: no upload gives resume data yet.
    public var uploadTaskResumeData: Data? { nil }
}
