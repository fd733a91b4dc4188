import Foundation

/// A request as the server received it.
public struct RecordedRequest: Sendable, Equatable, Codable, Identifiable {
    /// How the exchange ended.
    public enum Outcome: String, Sendable, Codable {
        /// The exchange has not ended yet.
        case open
        /// The script ran to its end, and the response had the announced length.
        case answered
        /// The script closed or reset the connection, or sent less than the announced length.
        case cutByScript
        /// The client closed the connection first.
        case clientClosed
        /// `stop()` or `dropConnections()` ended the exchange.
        case serverClosed
    }

    /// The number of the request on this server, from 1.
    public let id: Int
    /// The number of the connection, from 1.
    public let connection: Int
    /// The method as written.
    public let method: String
    /// The path as written, still percent-encoded.
    public let path: String
    /// The text after `?`, still percent-encoded.
    public let query: String?
    /// All header lines in order.
    public let headers: HeaderList
    /// When the request's headers were complete.
    public let receivedAt: Date
    /// The number of body bytes that arrived.
    public package(set) var bodyByteCount = 0
    /// `true` if the request's body arrived completely.
    public package(set) var isComplete = false
    /// The last status line that was written, without interim responses (1xx).
    public package(set) var status: Int?
    /// The number of the response's body bytes that were passed to the kernel. The client received at most this number of bytes.
    public package(set) var bodyBytesSent = 0
    /// How the exchange ended.
    public package(set) var outcome = Outcome.open

    /// A request's path and query as written.
    public var target: String { query.map { "\(path)?\($0)" } ?? path }
}

/// The events on a server so far.
public struct ServerActivity: Sendable {
    /// Requests in the order of arrival.
    public package(set) var requests: [RecordedRequest] = []
    /// Connections accepted since the start.
    public package(set) var connectionsAccepted = 0
    /// Connections open now.
    public package(set) var connectionsOpen = 0

    package init() {}
}

/// The reason why waiting for an event failed.
public enum WaitFailure: Error, Sendable, Equatable, CustomStringConvertible {
    /// The time limit was reached. The summary describes the events until the limit.
    case timedOut(summary: String)
    /// The server stopped, so no more events will occur.
    case serverStopped(summary: String)

    /// The reason and the log.
    public var description: String {
        switch self {
        case .timedOut(let summary): "the wait timed out; events on the server: \(summary)"
        case .serverStopped(let summary): "the server stopped; events on the server: \(summary)"
        }
    }
}

extension ServerActivity {
    /// Returns the requests to a path. The path is exact, or a prefix that ends with `*`.
    package func requests(matching path: String) -> [RecordedRequest] {
        requests.filter { path.hasSuffix("*") ? $0.path.hasPrefix(path.dropLast()) : $0.path == path }
    }

    /// Records a request whose headers arrived. The number of the request is its id.
    package mutating func receive(connection: Int, method: String, uri: String, headers: HeaderList, at date: Date)
        -> RecordedRequest
    {
        let halves = uri.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        let request = RecordedRequest(
            id: requests.count + 1, connection: connection, method: method, path: halves.first.map(String.init) ?? "",
            query: halves.count > 1 ? String(halves[1]) : nil, headers: headers, receivedAt: date)
        requests.append(request)
        return request
    }

    /// Changes the record of a request. If the record already has an outcome, the outcome does not change. The numbers of bytes
    /// may still grow, for example when a refused body is drained.
    package mutating func change(_ id: Int, _ body: (inout RecordedRequest) -> Void) {
        let before = requests[id - 1].outcome
        body(&requests[id - 1])
        if before != .open { requests[id - 1].outcome = before }
    }

    package var summary: String {
        let lines = requests.suffix(20).map {
            "#\($0.id) \($0.method) \($0.target) in=\($0.bodyByteCount) out=\($0.bodyBytesSent)"
                + " status=\($0.status.map(String.init) ?? "-") \($0.outcome.rawValue)"
        }
        return "\(connectionsAccepted) connections, \(connectionsOpen) open; " + lines.joined(separator: "; ")
    }
}
