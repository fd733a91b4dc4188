import Foundation
import Synchronization
import TransferMachines

/// Compares the body of a response with a part of an upload's snapshot while the body arrives, without storing the body.
final class ComparisonSink: BodySink {
    private struct State {
        /// The source of the snapshot's bytes. `nil` if the body cannot be compared.
        var file: UploadFile?
        /// The number of bytes of the range that have not arrived yet.
        var missing: Int64 = 0
        /// `true` if the range ends at the end of the snapshot.
        var isLast = false
        var comparison = BodyComparison.impossible
    }

    private let url: URL
    private let part: SnapshotPart
    private let calls: FileCalls
    private let state = Mutex(State())

    /// - Throws: ``FileTrouble`` if the snapshot cannot be opened. The initializer throws this error before any request is sent.
    init(_ url: URL, _ part: SnapshotPart, _ calls: FileCalls) throws(FileTrouble) {
        (self.url, self.part, self.calls) = (url, part, calls)
        _ = try UploadFile(url, size: part.total, calls: calls)
    }

    /// The result for the bytes that have arrived so far.
    var comparison: BodyComparison { state.withLock { $0.comparison } }

    func receive(head: ResponseHead) -> Bool {
        guard let range = part.range(in: head) else { return true }
        let count = range.upperBound - range.lowerBound
        let file = try? UploadFile(url, size: part.total, content: .snapshot(from: range.lowerBound, count: count), calls: calls)
        state.withLock { state in
            (state.file, state.missing, state.isLast) = (file, count, range.upperBound == part.total)
            state.comparison = count == 0 ? .same : .incomplete
        }
        return true
    }

    func write(_ bytes: UnsafeRawBufferPointer) -> Bool {
        state.withLock { state in
            guard let file = state.file, state.comparison != .differs else { return false }
            let count = Int(min(Int64(bytes.count), state.missing))
            guard let ours = Self.read(count, of: file) else {
                state.file = nil
                return false
            }
            guard ours.elementsEqual(bytes.prefix(count)) else {
                state.comparison = .differs
                return false
            }
            state.missing -= Int64(count)
            if state.missing == 0 { state.comparison = .same }
            guard count < bytes.count else { return true }
            // If the body is longer than the snapshot, the body belongs to another file. Bytes after the end of the range are not
            // needed.
            if state.isLast { state.comparison = .differs }
            return false
        }
    }

    /// - Returns: the bytes, or `nil` if the snapshot cannot be read.
    private static func read(_ count: Int, of file: UploadFile) -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: count)
        var filled = 0
        while filled < count {
            let more = bytes.withUnsafeMutableBytes { buffer in
                file.read(into: UnsafeMutableRawBufferPointer(rebasing: buffer[filled...]))
            }
            guard let more, more > 0 else { return nil }
            filled += more
        }
        return bytes
    }
}
