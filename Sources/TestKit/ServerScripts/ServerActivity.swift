import Foundation

/// One request as the server saw it.
public struct RecordedRequest: Sendable, Equatable, Codable, Identifiable {
    /// How the exchange ended.
    public enum Outcome: String, Sendable, Codable {
        /// Not ended yet.
        case open
        /// The script ran to its end and the answer had the length it announced.
        case answered
        /// The script closed or reset the connection, or ended short of the announced length.
        case cutByScript
        /// The client went away first.
        case clientClosed
        /// `stop()` or `dropConnections()` ended it.
        case serverClosed
    }

    /// Number of the request on this server, from 1.
    public let id: Int
    /// Number of the connection, from 1.
    public let connection: Int
    /// The method as written.
    public let method: String
    /// The path as written, still percent-encoded.
    public let path: String
    /// What follows `?`, still percent-encoded.
    public let query: String?
    /// All header lines in order.
    public let headers: HeaderList
    /// When its head was complete.
    public let receivedAt: Date
    /// Body bytes that arrived.
    public package(set) var bodyByteCount = 0
    /// Whether the request's body arrived whole.
    public package(set) var isComplete = false
    /// The last status line written, 1xx excluded.
    public package(set) var status: Int?
    /// Body bytes of the answer handed to the kernel: an upper bound of what the client got.
    public package(set) var bodyBytesSent = 0
    /// How it ended.
    public package(set) var outcome = Outcome.open

    /// A request's path and query as written.
    public var target: String { query.map { "\(path)?\($0)" } ?? path }
}

/// All that happened on a server so far.
public struct ServerActivity: Sendable {
    /// Requests in the order of arrival.
    public package(set) var requests: [RecordedRequest] = []
    /// Connections accepted since the start.
    public package(set) var connectionsAccepted = 0
    /// Connections open now.
    public package(set) var connectionsOpen = 0

    package init() {}
}

/// Why waiting for an event ended without it.
public enum WaitFailure: Error, Sendable, Equatable, CustomStringConvertible {
    /// The time passed; with a summary of what had happened instead.
    case timedOut(summary: String)
    /// The server stopped; nothing more will happen.
    case serverStopped(summary: String)

    /// The reason and the log.
    public var description: String {
        switch self {
        case .timedOut(let summary): "timed out waiting; the server saw: \(summary)"
        case .serverStopped(let summary): "the server stopped; it had seen: \(summary)"
        }
    }
}

extension ServerActivity {
    /// Requests to a path (exact, or a prefix ending in `*`).
    package func requests(matching path: String) -> [RecordedRequest] {
        requests.filter { path.hasSuffix("*") ? $0.path.hasPrefix(path.dropLast()) : $0.path == path }
    }

    /// A request's head arrived; its number is its id.
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

    /// Changes an entry. Its first end stays; counts may still grow, as when a refused body is drained.
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
