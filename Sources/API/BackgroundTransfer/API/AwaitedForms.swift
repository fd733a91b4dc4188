import Foundation
import FoundationNetworking

// The async methods without a delegate parameter. The methods are necessary because an app may declare a protocol with these
// methods and conform `URLSession` to this protocol. A method with a default argument would not satisfy the protocol.
extension URLSession {
    /// Sends a request and returns the complete response, for any HTTP status.
    ///
    /// - Throws: `URLError`. The code is `.cancelled` if the awaiting task is cancelled.
    public func data(for request: URLRequest) async throws -> (Data, URLResponse) { try await data(for: request, delegate: nil) }

    /// Sends a request and returns the complete response, for any HTTP status.
    ///
    /// - Throws: `URLError`. The code is `.cancelled` if the awaiting task is cancelled.
    public func data(from url: URL) async throws -> (Data, URLResponse) { try await data(from: url, delegate: nil) }

    /// Sends a request and returns the complete response in a file, for any HTTP status. The file is in the temporary folder, and
    /// the caller owns the file.
    ///
    /// - Throws: `URLError`. The code is `.cancelled` if the awaiting task is cancelled.
    public func download(for request: URLRequest) async throws -> (URL, URLResponse) {
        try await download(for: request, delegate: nil)
    }

    /// Sends a request and returns the complete response in a file, for any HTTP status. The file is in the temporary folder, and
    /// the caller owns the file.
    ///
    /// - Throws: `URLError`. The code is `.cancelled` if the awaiting task is cancelled.
    public func download(from url: URL) async throws -> (URL, URLResponse) { try await download(from: url, delegate: nil) }

    /// Sends a file and returns the response, for any HTTP status.
    ///
    /// - Throws: `URLError`. The code is `.cancelled` if the awaiting task is cancelled.
    public func upload(for request: URLRequest, fromFile file: URL) async throws -> (Data, URLResponse) {
        try await upload(for: request, fromFile: file, delegate: nil)
    }

    /// Sends bytes and returns the response, for any HTTP status.
    ///
    /// - Throws: `URLError`. The code is `.cancelled` if the awaiting task is cancelled.
    public func upload(for request: URLRequest, from bodyData: Data) async throws -> (Data, URLResponse) {
        try await upload(for: request, from: bodyData, delegate: nil)
    }
}

// Creates stream tasks and web socket tasks.
extension URLSession {
    /// Creates a task that fails with `URLError.unsupportedURL`, because this module does not support stream tasks.
    public func streamTask(withHostName hostname: String, port: Int) -> URLSessionStreamTask {
        let task = URLSessionStreamTask(session: self, request: nil)
        task.facts.withLock { $0.error = URLError(.unsupportedURL, userInfo: URLSessionStreamTask.leftOut) }
        engine.add(task)
        return task
    }

    /// Creates a task for a web socket. The address has the scheme `ws` or `wss`.
    public func webSocketTask(with url: URL) -> URLSessionWebSocketTask { webSocketTask(with: URLRequest(url: url)) }

    /// Creates a task for a web socket, for which the server chooses one of several subprotocols.
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

    /// Creates a task for a web socket. The handshake contains the headers of the request, for example `Sec-WebSocket-Protocol`.
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
    /// Returns the session's delegate if `asked` is the task's own delegate. A default implementation of a delegate method calls
    /// this function only if the task's own delegate does not implement the method.
    func delegate(
        of task: URLSessionTask, after asked: any URLSessionTaskDelegate
    ) -> (any URLSessionTaskDelegate)? {
        guard let own = task.delegate, own === asked, let next = delegate, next !== own else { return nil }
        return next as? any URLSessionTaskDelegate
    }
}
