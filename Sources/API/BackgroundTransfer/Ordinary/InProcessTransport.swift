import BackgroundRuntime
import CurlTransport
import Foundation
import Synchronization
import TransferMachines

/// A simulated network for the ordinary sessions of an app on a test host.
package protocol TestWire: Sendable {
    /// - Parameter launch: the launch whose process makes the request, or `nil` for the test itself.
    func start(
        _ attempt: AttemptID, _ request: WireRequest, source: (any BodySource)?, sink: any BodySink, launch: Int64?,
        handler: @escaping @Sendable (TransportEvent) -> Void)
    func cancel(_ attempt: AttemptID)
    /// Continues an attempt that waited, because the receiver of the response had no room, or the source of the request body had
    /// no bytes.
    func continueWork(_ attempt: AttemptID)
}

/// The transport of this process's ordinary sessions. The transport's thread sleeps while nothing is transferred.
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
    ///   - isOnTestHost: `true` if the caller belongs to the test of the test host.
    ///   - handler: a closure that receives the events. The closure is called on the transport's thread.
    func start(
        _ attempt: AttemptID, _ request: WireRequest, source: (any BodySource)?, sink: any BodySink, launch: Int64?,
        isOnTestHost: Bool, handler: @escaping @Sendable (TransportEvent) -> Void
    ) {
        // While a test host is used, requests use the simulated network. One kind of request is an exception: a request to a
        // loopback address by code outside the test. Another test in this process may have a real server at this address.
        if let testHost, isOnTestHost || !Self.isLoopback(URL(string: request.url)) {
            return testHost.start(attempt, request, source: source, sink: sink, launch: launch, handler: handler)
        }
        let transport = state.withLock { state -> CurlTransport in
            state.handlers[attempt] = handler
            if let transport = state.transport { return transport }
            let name = ProcessInfo.processInfo.processName
            let made = CurlTransport(handler: { [weak self] in self?.handle($0) }, userAgent: name)
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

    func continueWork(_ attempt: AttemptID) {
        testHost?.continueWork(attempt)
        state.withLock { $0.transport }?.continueWork(attempt)
    }

    private func handle(_ event: TransportEvent) {
        switch event {
        case .progress(let attempt, _, _), .resumption(let attempt, _): state.withLock { $0.handlers[attempt] }?(event)
        case .ended(let attempt, _): state.withLock { $0.handlers.removeValue(forKey: attempt) }?(event)
        }
    }
}

/// A body source that reads from memory.
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

/// A body source that reads a file, up to the size that the file had when the source was created.
final class FileSource: BodySource {
    private let handle: FileHandle
    let byteCount: Int64

    /// Opens a file. Returns `nil` if the path is not the path of a readable file.
    init?(_ file: URL) {
        var information = stat()
        // Without `O_NONBLOCK`, opening a pipe would wait until another process opens the pipe.
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
