import Foundation
import FoundationNetworking

// The async methods without a delegate parameter, because a protocol of the app may declare them with these names.
extension URLSession {
    /// Returns the complete response, for any HTTP status.
    ///
    /// - Throws: `URLError`; `.cancelled` when the awaiting task is cancelled.
    public func data(for request: URLRequest) async throws -> (Data, URLResponse) { try await data(for: request, delegate: nil) }

    /// Returns the complete response, for any HTTP status.
    ///
    /// - Throws: `URLError`; `.cancelled` when the awaiting task is cancelled.
    public func data(from url: URL) async throws -> (Data, URLResponse) { try await data(from: url, delegate: nil) }

    /// Returns the complete response in a file, for any HTTP status. The file is in the temporary folder and belongs to the caller.
    ///
    /// - Throws: `URLError`; `.cancelled` when the awaiting task is cancelled.
    public func download(for request: URLRequest) async throws -> (URL, URLResponse) {
        try await download(for: request, delegate: nil)
    }

    /// Returns the complete response in a file, for any HTTP status. The file is in the temporary folder and belongs to the caller.
    ///
    /// - Throws: `URLError`; `.cancelled` when the awaiting task is cancelled.
    public func download(from url: URL) async throws -> (URL, URLResponse) { try await download(from: url, delegate: nil) }

    /// Sends a file and returns the response, for any HTTP status.
    ///
    /// - Throws: `URLError`; `.cancelled` when the awaiting task is cancelled.
    public func upload(for request: URLRequest, fromFile file: URL) async throws -> (Data, URLResponse) {
        try await upload(for: request, fromFile: file, delegate: nil)
    }

    /// Sends bytes and returns the response, for any HTTP status.
    ///
    /// - Throws: `URLError`; `.cancelled` when the awaiting task is cancelled.
    public func upload(for request: URLRequest, from bodyData: Data) async throws -> (Data, URLResponse) {
        try await upload(for: request, from: bodyData, delegate: nil)
    }
}

// Tasks of other kinds than data, download and upload.
extension URLSession {
    /// Makes a task that fails with `URLError.unsupportedURL`, because stream tasks are not supported.
    public func streamTask(withHostName hostname: String, port: Int) -> URLSessionStreamTask {
        let task = URLSessionStreamTask(session: self, request: nil)
        task.facts.withLock { $0.error = URLError(.unsupportedURL, userInfo: URLSessionStreamTask.leftOut) }
        engine.add(task)
        return task
    }

    /// Makes a task for a web socket. The scheme of the address is `ws` or `wss`.
    public func webSocketTask(with url: URL) -> URLSessionWebSocketTask { webSocketTask(with: URLRequest(url: url)) }

    /// Makes a task for a web socket with one of several subprotocols.
    ///
    /// - Parameters:
    ///   - url: an address with the scheme `ws` or `wss`.
    ///   - protocols: the names of the subprotocols, the preferred name first.
    public func webSocketTask(with url: URL, protocols: [String]) -> URLSessionWebSocketTask {
        var request = URLRequest(url: url)
        if !protocols.isEmpty {
            request.setValue(protocols.joined(separator: ", "), forHTTPHeaderField: "Sec-WebSocket-Protocol")
        }
        return webSocketTask(with: request)
    }

    /// Makes a task for a web socket. The handshake has the headers of the request, for example `Sec-WebSocket-Protocol`.
    public func webSocketTask(with request: URLRequest) -> URLSessionWebSocketTask {
        let task = URLSessionWebSocketTask(session: self, request: request)
        if !(engine is OrdinarySession) {
            let why =
                "A background session has no web sockets, because the agent cannot exchange their messages with the app. "
                + "Use an ordinary session."
            let error = URLError(.unsupportedURL, userInfo: [NSLocalizedDescriptionKey: why]).concerning(request.url)
            task.facts.withLock { $0.error = error }
            task.exchange.end(error, keeping: false)
        }
        engine.add(task)
        return task
    }
}

extension URLSession {
    /// Returns the session's delegate if `asked` is the task's own delegate, which does not implement the method.
    func delegate(
        of task: URLSessionTask, after asked: any URLSessionTaskDelegate
    ) -> (any URLSessionTaskDelegate)? {
        guard let own = task.delegate, own === asked, let next = delegate, next !== own else { return nil }
        return next as? any URLSessionTaskDelegate
    }
}
