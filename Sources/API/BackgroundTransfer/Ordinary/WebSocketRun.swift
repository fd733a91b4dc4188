import BackgroundRuntime
import CurlTransport
import Foundation
import FoundationNetworking
import Spool
import Synchronization
import TransferMachines

/// The work of a web socket task: the headers and cookies of the handshake, the connection, and the calls of the delegate.
final class WebSocketRun: TaskRun {
    private struct State {
        var status = TaskStatus(state: .running)
        var connection: WebSocketConnection?
        var request: URLRequest?
        /// The address of the handshake, with the scheme http or https.
        var url: URL?
        var isCancelled = false
        var isOver = false
        let runtime = AppRuntime.shared
        let storesRuntime = AppRuntime.ofWork
        let began: Date

        init() { began = runtime.now }
    }

    private let task: URLSessionWebSocketTask
    private let engine: OrdinarySession
    private let state = Mutex(State())
    /// `true` if only loopback addresses can be reached, because the simulated network of a test host does not support web
    /// sockets.
    private let isOnTestHost = AppRuntime.isOnTestHost || InProcessTransport.shared.isOfTestHost

    private let configuration: URLSessionConfiguration

    init(_ task: URLSessionWebSocketTask, _ engine: OrdinarySession) {
        (self.task, self.engine, configuration) = (task, engine, engine.configuration.resolved())
    }

    var status: TaskStatus { state.withLock { $0.status } }
    private var exchange: WebSocketExchange { task.exchange }

    // MARK: Beginning

    func begin() {
        if let refused = task.facts.withLock({ $0.error }) { return finish(refused) }
        engine.cookies.whenStored { self.connect() }
    }

    private func connect() {
        do {
            let connection = try makeConnection()
            let isCancelled = state.withLock { state in
                state.connection = connection
                if state.status.state == .suspended { connection.setHeld(true) }
                return state.isCancelled
            }
            if isCancelled { return finish(URLError(.cancelled)) }
            exchange.attach(connection)
            connection.begin { [self] in handle($0) }
        } catch {
            finish(URLError(bridging: error))
        }
    }

    private func makeConnection() throws -> WebSocketConnection {
        guard var request = task.originalRequest else { throw URLError(.badURL) }
        request.url = try Self.httpURL(request.url)
        request.httpMethod = "GET"
        let order = try WireOrder(request, configuration)
        guard !isOnTestHost || InProcessTransport.isLoopback(request.url) else {
            throw URLError(.notConnectedToInternet, userInfo: [NSLocalizedDescriptionKey: Self.noTestNetwork])
        }
        var headers = order.headers
        let now = state.withLock { state in
            (state.request, state.url) = (request, request.url)
            return state.storesRuntime.now
        }
        if let url = request.url, let cookies = SessionCookies(configuration) {
            headers = cookies.added(to: headers, for: url, of: request, now: now)
        }
        for (name, value) in [
            ("Accept-Language", UserLocale.acceptLanguage), ("User-Agent", ProcessInfo.processInfo.processName),
        ] where !headers.contains(where: { $0.name.lowercased() == name.lowercased() }) {
            headers.append(HeaderField(name, value))
        }
        var wire = WireRequest(method: "GET", url: order.url, headers: headers)
        (wire.idleTimeout, wire.connectTimeout) = (order.idleTimeout, order.idleTimeout)
        wire.leastTLS = configuration.leastTLS
        let key = Data((0..<16).map { _ in UInt8.random(in: .min ... .max) }).base64EncodedString()
        let handshake = WebSocketHandshake(url: order.url, headers: headers, key: key) { key in
            FileDigest.sha1(of: WebSocketHandshake.proof(of: key)).base64EncodedString()
        }
        return WebSocketConnection(wire, handshake, maximumMessageSize: exchange.maximumMessageSize)
    }

    private static let noTestNetwork =
        "The network of a test driver does not support web sockets. "
        + "Start a server on loopback for the test; other servers cannot be reached."

    private static func httpURL(_ url: URL?) throws -> URL? {
        guard let url, var parts = URLComponents(url: url, resolvingAgainstBaseURL: true) else { throw URLError(.badURL) }
        switch parts.scheme?.lowercased() {
        case "ws", "http": parts.scheme = "http"
        case "wss", "https": parts.scheme = "https"
        default: throw URLError(.unsupportedURL)
        }
        parts.fragment = nil
        return parts.url
    }

    // MARK: Events of the connection, on its thread

    private func handle(_ event: WebSocketEvent) {
        switch event {
        case .opened(let subprotocol, let head):
            handle(head)
            callDelegate { $1.urlSession($0, webSocketTask: $2, didOpenWithProtocol: subprotocol) }
        case .message(let message):
            state.withLock { $0.status.bytesReceived += Int64(message.byteCount) }
            exchange.deliver(message)
        case .sent(let number, let byteCount):
            state.withLock { $0.status.bytesSent += Int64(byteCount) }
            exchange.done(number)
        case .answered(let ping): exchange.done(ping)
        case .ended(let end): handle(end)
        }
    }

    private func handle(_ head: ResponseHead) {
        let (request, url, now) = state.withLock { state in
            state.status.response = head.response(asked: head.url)
            return (state.request, state.url, state.storesRuntime.now)
        }
        if let request, let url { SessionCookies(configuration)?.store(head, from: url, of: request, now: now) }
    }

    private func handle(_ end: WebSocketEnd) {
        switch end {
        case .closed(let code, let reason):
            closed(code, reason)
            finish(nil)
        case .failed(.lost(let isOrderly)):
            // As in Foundation, the socket counts as closed normally if the server ended the connection in an orderly way, even
            // if no close frame arrived.
            closed(isOrderly ? 1000 : 1006, Data())
            finish(URLError(.networkConnectionLost))
        case .failed(.brokenRule(let rule)):
            closed(rule.kind.code, Data())
            let code: URLError.Code = rule.kind == .tooBig ? .dataLengthExceedsMaximum : .badServerResponse
            finish(
                URLError(code, userInfo: [NSLocalizedDescriptionKey: "The server violated the web socket protocol: \(rule.why)."])
            )
        case .failed(.refused(let refusal)):
            if let head = refusal.head { handle(head) }
            finish(
                URLError(
                    .badServerResponse,
                    userInfo: [NSLocalizedDescriptionKey: "The web socket could not be opened: \(refusal.why)."]))
        case .failed(.noAnswer): finish(URLError(.badServerResponse))
        case .noConnection(let failure): finish(TransferTrouble(failure).urlError)
        case .cancelled: finish(URLError(.cancelled))
        }
    }

    private func closed(_ code: Int, _ reason: Data) {
        guard !state.withLock({ $0.isOver }) else { return }
        let reason = reason.isEmpty ? nil : reason
        exchange.closing = (code, reason)
        callDelegate { $1.urlSession($0, webSocketTask: $2, didCloseWith: $2.closeCode, reason: reason) }
    }

    // MARK: Calls of the app

    func suspend() { change(isHeld: true) }
    func release() { change(isHeld: false) }

    private func change(isHeld: Bool) {
        state.withLock { state in
            guard !state.isOver else { return }
            state.status.state = isHeld ? .suspended : .running
            state.connection?.setHeld(isHeld)
        }
    }

    func cancel() {
        let connection = state.withLock { state in
            state.isCancelled = true
            return state.connection
        }
        connection?.cancel()
        finish(URLError(.cancelled))
    }

    /// Closes the connection after all messages were sent that the app passed to the task before this call. If the connection is
    /// not open yet, the task is cancelled.
    func close(_ code: Int, _ reason: Data) {
        guard let connection = state.withLock({ $0.connection }) else { return cancel() }
        connection.close(code: code, reason: reason)
    }

    // MARK: Calls of the delegate

    private func callDelegate(
        _ body: @escaping @Sendable (URLSession, any URLSessionWebSocketDelegate, URLSessionWebSocketTask) -> Void
    ) {
        guard !state.withLock({ $0.isOver }),
            let hearer = task.receiver(as: (any URLSessionWebSocketDelegate).self, or: engine.delegate)
        else { return }
        nonisolated(unsafe) let delegate = hearer
        let task = task
        task.post { body(task.session, delegate, task) }
    }

    func finish(_ error: URLError?) {
        let ended = state.withLock { state -> State? in
            guard !state.isOver else { return nil }
            (state.isOver, state.status.state) = (true, .completed)
            defer { state.connection = nil }
            return state
        }
        guard let ended else { return }
        let error = error?.concerning(task.originalRequest?.url)
        task.facts.withLock { ($0.error, $0.last) = (error, ended.status) }
        exchange.end(
            error ?? URLError(.networkConnectionLost).concerning(task.originalRequest?.url), keeping: error?.code != .cancelled)
        let sessionDelegate = HeldDelegate(engine.delegate)
        task.post { [self] in
            task.facts.withLock { $0.isCompleted = true }
            // The task is removed from the session's list of tasks before the app receives the result.
            engine.forget(task)
            let delegate = task.receiver(or: sessionDelegate?.object)
            delegate?.urlSession(task.session, task: task, didFinishCollecting: metrics(ended))
            delegate?.urlSession(task.session, task: task, didCompleteWithError: error)
            engine.ended(task)
        }
    }

    private func metrics(_ ended: State) -> URLSessionTaskMetrics {
        let end = max(ended.runtime.now, ended.began)
        let transactions = task.originalRequest.map { request in
            URLSessionTaskTransactionMetrics(
                request: request, response: ended.status.response, fetchStartDate: ended.began, responseEndDate: end,
                received: ended.status.bytesReceived, sent: ended.status.bytesSent, type: .networkLoad)
        }
        return URLSessionTaskMetrics(
            taskInterval: DateInterval(start: ended.began, end: end), attemptCount: 1,
            transactions: transactions.map { [$0] } ?? [])
    }
}
