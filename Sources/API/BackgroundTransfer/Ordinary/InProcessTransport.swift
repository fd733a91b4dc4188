import BackgroundRuntime
import CurlTransport
import Foundation
import Synchronization
import TransferMachines

/// What takes the network's place for the ordinary sessions of an app on a test host.
package protocol TestWire: Sendable {
    /// - Parameter launch: the launch whose process asks; `nil`: the test itself.
    func start(
        _ attempt: AttemptID, _ request: WireRequest, source: (any BodySource)?, sink: any BodySink, launch: Int64?,
        handler: @escaping @Sendable (TransportEvent) -> Void)
    func cancel(_ attempt: AttemptID)
    /// A sink that was full takes bytes again, or a source has some.
    func goOn(_ attempt: AttemptID)
}

/// The one engine of this process's ordinary sessions: a thread that sleeps while nothing moves.
package final class InProcessTransport: Sendable {
    static var shared: InProcessTransport { AppRuntime.shared.part { InProcessTransport(onTestHost: nil) } }

    private struct State {
        var last: Int64 = 0
        var handlers: [AttemptID: @Sendable (TransportEvent) -> Void] = [:]
        var transport: CurlTransport?
    }

    private let state = Mutex(State())
    private let testHost: (any TestWire)?

    var isOfTestHost: Bool { testHost != nil }

    package init(onTestHost testHost: (any TestWire)?) { self.testHost = testHost }

    func nextNumber() -> Int64 {
        state.withLock { state in
            state.last += 1
            return state.last
        }
    }

    /// - Parameters:
    ///   - isOnTestHost: whether the work that asks is known to be part of the test host's test.
    ///   - handler: called on the engine's thread.
    func start(
        _ attempt: AttemptID, _ request: WireRequest, source: (any BodySource)?, sink: any BodySink, launch: Int64?,
        isOnTestHost: Bool, handler: @escaping @Sendable (TransportEvent) -> Void
    ) {
        // Another test of this process may have a server of its own on loopback. Nobody reaches further than that.
        if let testHost, isOnTestHost || !Self.isLoopback(URL(string: request.url)) {
            return testHost.start(attempt, request, source: source, sink: sink, launch: launch, handler: handler)
        }
        let transport = state.withLock { state -> CurlTransport in
            state.handlers[attempt] = handler
            if let transport = state.transport { return transport }
            let name = ProcessInfo.processInfo.processName
            let made = CurlTransport(handler: { [weak self] in self?.hear($0) }, userAgent: name)
            state.transport = made
            return made
        }
        transport.start(attempt, request, source: source, sink: sink)
    }

    static func isLoopback(_ url: URL?) -> Bool {
        ["127.0.0.1", "localhost", "::1", "[::1]"].contains(url?.host() ?? "")
    }

    func cancel(_ attempt: AttemptID) {
        testHost?.cancel(attempt)
        state.withLock { $0.transport }?.cancel(attempt)
    }

    func goOn(_ attempt: AttemptID) {
        testHost?.goOn(attempt)
        state.withLock { $0.transport }?.goOn(attempt)
    }

    private func hear(_ event: TransportEvent) {
        switch event {
        case .progress(let attempt, _, _), .resumption(let attempt, _): state.withLock { $0.handlers[attempt] }?(event)
        case .ended(let attempt, _): state.withLock { $0.handlers.removeValue(forKey: attempt) }?(event)
        }
    }
}

/// Bytes from memory.
final class DataSource: BodySource {
    private let data: Data
    private let position = Mutex(0)

    init(_ data: Data) { self.data = data }

    var byteCount: Int64 { Int64(data.count) }

    func read(into buffer: UnsafeMutableRawBufferPointer) -> Int? {
        position.withLock { position in
            let count = min(buffer.count, data.count - position)
            data.copyBytes(to: buffer, from: data.startIndex + position..<data.startIndex + position + count)
            position += count
            return count
        }
    }

    func rewind() -> Bool {
        position.withLock { $0 = 0 }
        return true
    }
}

/// Bytes of a file, as many as it had when it was opened.
final class FileSource: BodySource {
    private let handle: FileHandle
    let byteCount: Int64

    /// `nil`: not a file that can be read.
    init?(_ file: URL) {
        var information = stat()
        // Whoever opens a pipe would wait for its other end.
        let descriptor = open(file.path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        guard fstat(descriptor, &information) == 0, information.st_mode & S_IFMT == S_IFREG else { return nil }
        byteCount = Int64(information.st_size)
    }

    func read(into buffer: UnsafeMutableRawBufferPointer) -> Int? {
        let count = Foundation.read(handle.fileDescriptor, buffer.baseAddress, buffer.count)
        return count < 0 ? nil : count
    }

    func rewind() -> Bool { lseek(handle.fileDescriptor, 0, SEEK_SET) == 0 }
}
