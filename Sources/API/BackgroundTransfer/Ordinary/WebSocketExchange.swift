import CurlTransport
import Foundation
import FoundationNetworking
import Synchronization
import TransferMachines

/// The messages and pings of a web socket task. If the connection is not open yet, messages and pings wait in this object.
final class WebSocketExchange: Sendable {
    typealias Done = @Sendable (URLError?) -> Void
    typealias Receiver = @Sendable (Result<WebSocketMachine.Message, URLError>) -> Void

    private enum PendingCall {
        case send(WebSocketMachine.Message, Int)
        case ping(Int)
    }

    private struct State {
        var lastNumber = 0
        var connection: WebSocketConnection?
        var wishes: [PendingCall] = []
        /// The handlers of the callers that wait until a message is sent or a ping is confirmed.
        var waiting: [Int: Done] = [:]
        /// The received messages. Messages are removed from the front of the array, because a slice would keep removed messages
        /// in memory.
        var arrived: [WebSocketMachine.Message] = []
        var receivers: [(number: Int, call: Receiver)] = []
        /// The error that all calls receive after the connection has ended.
        var end: URLError?
        var maximumMessageSize = 1 << 20
        var closing: (code: Int, reason: Data?) = (0, nil)

        mutating func nextNumber() -> Int {
            lastNumber += 1
            return lastNumber
        }
    }

    private let state = Mutex(State())

    /// The close code and the reason. The code is 0 if the socket is not closed.
    var closing: (code: Int, reason: Data?) {
        get { state.withLock { $0.closing } }
        set { state.withLock { $0.closing = newValue } }
    }

    var maximumMessageSize: Int {
        get { state.withLock { $0.maximumMessageSize } }
        set {
            state.withLock { state in
                state.maximumMessageSize = newValue
                state.connection?.limit(messageSize: newValue)
            }
        }
    }

    // MARK: The app's side

    func send(_ message: WebSocketMachine.Message, _ done: @escaping Done) { wish(done) { .send(message, $0) } }

    func ping(_ done: @escaping Done) { wish(done) { .ping($0) } }

    private func wish(_ done: @escaping Done, _ make: (Int) -> PendingCall) {
        let end = state.withLock { state -> URLError? in
            if let end = state.end { return end }
            let number = state.nextNumber()
            state.waiting[number] = done
            let wish = make(number)
            if let connection = state.connection { Self.pass(wish, connection) } else { state.wishes.append(wish) }
            return nil
        }
        if let end { done(end) }
    }

    private static func pass(_ wish: PendingCall, _ connection: WebSocketConnection) {
        switch wish {
        case .send(let message, let number): connection.send(message, number)
        case .ping(let number): connection.ping(number)
        }
    }

    /// Receives the next message. Messages that arrived before the end of the connection can still be received.
    ///
    /// - Parameter number: a number that ``reserve()`` returned. A number is necessary if the caller may end the wait early.
    func receive(_ number: Int? = nil, _ call: @escaping Receiver) {
        let answer = state.withLock { state -> Result<WebSocketMachine.Message, URLError>? in
            if !state.arrived.isEmpty {
                let message = state.arrived.removeFirst()
                state.connection?.took(message)
                return .success(message)
            }
            if let end = state.end { return .failure(end) }
            state.receivers.append((number ?? state.nextNumber(), call))
            return nil
        }
        if let answer { call(answer) }
    }

    func reserve() -> Int { state.withLock { $0.nextNumber() } }

    /// Makes the caller with this number stop waiting. Another caller receives the next message.
    func giveUp(_ number: Int) {
        let call = state.withLock { state in
            state.receivers.firstIndex { $0.number == number }.map { state.receivers.remove(at: $0).call }
        }
        call?(.failure(URLError(.cancelled)))
    }

    // MARK: The connection's side

    func attach(_ connection: WebSocketConnection) {
        state.withLock { state in
            guard state.end == nil else { return }
            state.connection = connection
            for wish in state.wishes { Self.pass(wish, connection) }
            state.wishes = []
        }
    }

    func deliver(_ message: WebSocketMachine.Message) {
        let call = state.withLock { state -> Receiver? in
            guard state.end == nil else { return nil }
            guard !state.receivers.isEmpty else {
                state.arrived.append(message)
                return nil
            }
            state.connection?.took(message)
            return state.receivers.removeFirst().call
        }
        call?(.success(message))
    }

    /// Calls the handler of the caller with this number, because its message was sent or its ping was confirmed.
    func done(_ number: Int) { state.withLock { $0.waiting.removeValue(forKey: number) }?(nil) }

    /// - Parameter keeping: `true` if received messages can still be read.
    func end(_ error: URLError, keeping: Bool) {
        let (waiting, receivers) = state.withLock { state -> ([Done], [Receiver]) in
            guard state.end == nil else { return ([], []) }
            state.end = error
            if !keeping { state.arrived = [] }
            defer { (state.waiting, state.receivers, state.wishes, state.connection) = ([:], [], [], nil) }
            return (state.waiting.sorted { $0.key < $1.key }.map(\.value), state.receivers.map(\.call))
        }
        for done in waiting { done(error) }
        for receiver in receivers { receiver(.failure(error)) }
    }
}
