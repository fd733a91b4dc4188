import BackgroundLedger
import CLinux
import Foundation
import Synchronization
import TransferMachines

/// Reads an upload's snapshot and hashes what it hands out.
final class UploadFile: BodySource {
    private struct State {
        var descriptor: Int32
        var position: Int64 = 0
        var digest = RunningDigest()
    }

    private let state: Mutex<State>
    let byteCount: Int64

    /// `nil` when the snapshot is not there in full.
    init?(_ url: URL, byteCount: Int64) {
        let descriptor = clinux_open(url.path, O_RDONLY | O_CLOEXEC, 0)
        var information = stat()
        guard descriptor >= 0, fstat(descriptor, &information) == 0, Int64(information.st_size) == byteCount else {
            if descriptor >= 0 { close(descriptor) }
            return nil
        }
        self.byteCount = byteCount
        state = Mutex(State(descriptor: descriptor))
    }

    deinit { state.withLock { _ = close($0.descriptor) } }

    func read(into buffer: UnsafeMutableRawBufferPointer) -> Int? {
        state.withLock { state in
            let count = pread(state.descriptor, buffer.baseAddress, buffer.count, off_t(state.position))
            guard count >= 0 else { return nil }
            state.position += Int64(count)
            state.digest.update(UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(buffer)[..<count]))
            return count
        }
    }

    func rewind() -> Bool {
        state.withLock { state in
            state.position = 0
            state.digest = RunningDigest()
        }
        return true
    }

    /// Digest of what was handed out, once all of it was.
    var sha256: String? { state.withLock { $0.position == byteCount ? $0.digest.hex : nil } }
}

/// The short answer to an upload: kept up to a bound, the rest is read and dropped.
final class AnswerSink: BodySink {
    func receive(head: ResponseHead) -> Bool { true }
    func write(_ bytes: UnsafeRawBufferPointer) -> Bool { true }
}
