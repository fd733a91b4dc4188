import Spool
import BackgroundLedger
import Foundation
import ProcessSupport
import Synchronization
import TransferMachines

/// Reads the bytes of an upload's snapshot for a request, and computes the digest of the bytes that it returns.
final class UploadFile: BodySource {
    private struct State {
        var descriptor: Int32
        /// The position in the body, not in the file.
        var position: Int64 = 0
        var digest = RunningDigest()
        var trouble: FileTrouble?
    }

    private let state: Mutex<State>
    private let path: String
    private let calls: FileCalls
    private let before: Data
    private let after: Data
    private let start: Int64
    /// The number of bytes of the file that belong to this body.
    private let fileBytes: Int64
    /// The number of bytes of the complete copy.
    let copyBytes: Int64
    let byteCount: Int64

    /// Opens the snapshot (the copy of the file to upload).
    ///
    /// - Parameters:
    ///   - size: the size of the snapshot in bytes.
    ///   - content: the part of the snapshot to send. The default is the complete snapshot.
    /// - Throws: ``FileTrouble``.
    init(_ url: URL, size: Int64, content: UploadContent? = nil, calls: FileCalls) throws(FileTrouble) {
        (path, self.calls) = (url.path, calls)
        switch content ?? .snapshot(from: 0, count: size) {
        case .none, .empty, .data: throw FileTrouble(why: "This upload has no file.", isPassing: false)
        case .snapshot(let from, let count): (before, after, start, fileBytes) = (Data(), Data(), from, count)
        case .wrapped(let opening, let closing): (before, after, start, fileBytes) = (opening, closing, 0, size)
        }
        let descriptor = calls.open(url.path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
        guard descriptor >= 0 else {
            throw .queuedCopyNotOpened(errno, url)
        }
        let found: Int64?
        do throws(FileTrouble) {
            found = try FileName.size(of: descriptor, at: url.path, calls)
        } catch {
            close(descriptor)
            throw error
        }
        guard found == size, start >= 0, fileBytes >= 0, start + fileBytes <= size else {
            close(descriptor)
            let why =
                found.map { "The queued copy of the file has \($0) bytes instead of \(size)." }
                ?? "The queued copy of the file was replaced by something that is not a file."
            throw FileTrouble(why: why, isPassing: false)
        }
        copyBytes = size
        byteCount = Int64(before.count + after.count) + fileBytes
        state = Mutex(State(descriptor: descriptor))
    }

    deinit { state.withLock { _ = close($0.descriptor) } }

    func read(into buffer: UnsafeMutableRawBufferPointer) -> Int? {
        state.withLock { state in
            let endOfFile = Int64(before.count) + fileBytes
            let count: Int
            switch state.position {
            case ..<Int64(before.count):
                count = Self.copy(before, from: state.position, into: buffer)
            case endOfFile...:
                count = Self.copy(after, from: state.position - endOfFile, into: buffer)
            default:
                let offset = start + state.position - Int64(before.count)
                count = calls.read(
                    state.descriptor, buffer.baseAddress, Int(min(Int64(buffer.count), endOfFile - state.position)), at: offset)
                guard count > 0 else {
                    state.trouble = FileTrouble(count < 0 ? errno : 0, ofOpenFile: path)
                    return nil
                }
                state.digest.update(UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(buffer)[..<count]))
            }
            state.position += Int64(count)
            return count
        }
    }

    private static func copy(_ data: Data, from offset: Int64, into buffer: UnsafeMutableRawBufferPointer) -> Int {
        let piece = data.dropFirst(Int(offset)).prefix(buffer.count)
        return piece.copyBytes(to: buffer)
    }

    /// The reason why the file could not be read during the upload.
    var trouble: FileTrouble? { state.withLock { $0.trouble } }

    func rewind() -> Bool {
        state.withLock { state in
            state.position = 0
            state.digest = RunningDigest()
        }
        return true
    }

    /// Returns the position in the file if `sent` bytes of the body were sent.
    func place(sent: Int64) -> Int64 { start + min(max(0, sent - Int64(before.count)), fileBytes) }

    /// The digest of the returned bytes. `nil` if the complete file has not been returned.
    var sha256: String? { state.withLock { fileBytes == copyBytes && $0.position == byteCount ? $0.digest.hex : nil } }

    /// `true` if the transport received the complete body.
    var isHandedOut: Bool { state.withLock { $0.position == byteCount } }

    /// `true` if the body contains only the last part of the copy.
    var isLastPart: Bool { start > 0 && start + fileBytes == copyBytes }

    /// Reads a range of the copy. The range does not have to be a part of the body.
    ///
    /// - Returns: An empty array if the copy cannot be read.
    func copy(from offset: Int64, count: Int) -> [UInt8] {
        let descriptor = state.withLock { $0.descriptor }
        return [UInt8](unsafeUninitializedCapacity: Int(min(Int64(count), copyBytes - offset))) { buffer, filled in
            filled = max(0, calls.read(descriptor, buffer.baseAddress, buffer.count, at: offset))
        }
    }
}

extension FileTrouble {
    /// The error for an upload whose queued copy is missing from the spool.
    static let queuedCopyIsGone = FileTrouble(why: "The queued copy of the file is missing from the spool.", isPassing: false)

    /// The error for an upload whose queued copy was put into another folder than the spool.
    static func queuedCopyIsElsewhere(_ spool: URL) -> FileTrouble {
        FileTrouble(
            why: """
                The queued copy is missing, and \(spool.path) is a new folder. Put the folder with the queued copies back. Or upload the file \
                again.
                """, isPassing: true)
    }

    fileprivate static func queuedCopyNotOpened(_ number: Int32, _ url: URL) -> FileTrouble {
        guard FileFault(number) != .missing else { return .queuedCopyIsGone }
        return FileTrouble(why: "\(url.path): " + String(cString: strerror(number)), isPassing: true)
    }
}

/// A body in memory. An empty body is sent with a length of 0.
final class DataSource: BodySource {
    private let bytes: Data
    private let position = Mutex(0)
    var byteCount: Int64 { Int64(bytes.count) }

    init(_ bytes: Data) { self.bytes = bytes }

    func read(into buffer: UnsafeMutableRawBufferPointer) -> Int? {
        position.withLock { position in
            let count = bytes.dropFirst(position).prefix(buffer.count).copyBytes(to: buffer)
            position += count
            return count
        }
    }

    func rewind() -> Bool {
        position.withLock { $0 = 0 }
        return true
    }
}

/// Stores the response body of an upload up to a limit. The bytes after the limit are read and discarded.
final class ResponseSink: BodySink {
    private let kept = Mutex(Data())

    /// The bytes that have arrived so far.
    var body: Data { kept.withLock { $0 } }

    func receive(head: ResponseHead) -> Bool { true }

    func write(_ bytes: UnsafeRawBufferPointer) -> Bool {
        kept.withLock { kept in kept.append(contentsOf: bytes.prefix(max(0, Int(UploadPlan.maximumAnswer) - kept.count))) }
        return true
    }
}
