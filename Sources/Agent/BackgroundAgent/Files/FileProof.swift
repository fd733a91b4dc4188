import Spool
import BackgroundLedger
import ProcessSupport
import Foundation
import Synchronization

/// Finds a complete file after an agent was killed. The agent was killed after it verified the file and before it committed the
/// final name.
package final class FileProof: DiskWork {
    /// The file that is searched, and its paths.
    struct Expectation: Equatable, Sendable {
        var part: URL
        var whole: URL
        /// `true` if the file with the final name must have the expected content. `false` if any file with this name is accepted,
        /// because the user may have changed the file.
        var mustMatch: Bool
        /// The `FileIdentity` of another file, which had the final name before the download.
        var replaced: String?
        /// The folder that must exist at this path. `nil` if any folder at this path is accepted.
        var folder: SeenFolder?
        var byteCount: Int64
        var sha256: String
    }

    package enum Finding: Sendable, Equatable {
        /// The partial file is complete, but does not have its final name.
        case partIsWhole(FileVersion)
        /// The file already has its final name.
        case isPlaced
        case isGone
        /// The file cannot be checked now.
        case unreadable(FileTrouble)
    }

    private struct State {
        var descriptor: Int32 = -1
        var isAtPart = true
        /// The state of the file before its first byte was read.
        var sight: FileVersion?
        var hashed: Int64 = 0
        var digest = RunningDigest()
    }

    /// The number of bytes that are hashed in one turn.
    private static let turn = 4 << 20

    private let expectation: Expectation
    private let state = Mutex(State())
    private let calls: FileCalls
    private let report: @Sendable (Finding) -> Void

    init(_ expectation: Expectation, _ calls: FileCalls, report: @escaping @Sendable (Finding) -> Void) {
        (self.expectation, self.calls, self.report) = (expectation, calls, report)
    }

    deinit { state.withLock { if $0.descriptor >= 0 { close($0.descriptor) } } }

    func work() -> DiskWorker.Rest {
        let finding = state.withLock { state -> Finding? in
            if state.descriptor < 0 {
                // A file in another folder than the expected folder is not the downloaded file.
                if let trouble = FileTrouble.otherFolder(of: expectation.whole, expectation.folder) {
                    return .unreadable(trouble)
                }
                let url = state.isAtPart ? expectation.part : expectation.whole
                state.descriptor = calls.open(url.path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
                if state.descriptor < 0 {
                    let number = errno
                    switch FileFault(number) {
                    case .missing, .noFolder: return next(&state, isThere: false)
                    // A link or another kind of file is not the verified file.
                    case .notAFile: return next(&state, isThere: true)
                    case .exists, .unsupported, .impossible, .noRoom, .notAllowed, .unavailable:
                        return .unreadable(Self.trouble(number, with: url))
                    }
                }
                guard let sight = FileVersion.open(state.descriptor, calls) else {
                    return .unreadable(Self.trouble(errno, with: url))
                }
                state.sight = sight
            }
            let isWhole: Bool
            switch turn(&state) {
            case .notAtEnd: return nil
            case .unreadable(let trouble): return .unreadable(trouble)
            case .end(let found): isWhole = found
            }
            if isWhole, let sight = state.sight { return state.isAtPart ? .partIsWhole(sight.ofContent) : .isPlaced }
            return next(&state, isThere: true)
        }
        guard let finding else { return .more }
        report(finding)
        return .nothing
    }

    private enum Turn {
        case notAtEnd
        /// The end of the file was reached. `isWhole` is `true` for the verified file, and `false` for another file.
        case end(isWhole: Bool)
        case unreadable(FileTrouble)
    }

    private func turn(_ state: inout State) -> Turn {
        var buffer = [UInt8](repeating: 0, count: Self.turn)
        let count = calls.read(state.descriptor, &buffer, buffer.count, at: state.hashed)
        guard count >= 0 else {
            let number = errno
            // A folder can be opened, but a folder is not a file.
            if FileFault(number) == .notAFile { return .end(isWhole: false) }
            return .unreadable(Self.trouble(number, with: state.isAtPart ? expectation.part : expectation.whole))
        }
        guard count > 0 else {
            return .end(isWhole: state.hashed == expectation.byteCount && state.digest.hex == expectation.sha256)
        }
        state.hashed += Int64(count)
        // The file is longer than expected, so it is another file.
        guard state.hashed <= expectation.byteCount else { return .end(isWhole: false) }
        buffer.withUnsafeBytes { state.digest.update(UnsafeRawBufferPointer(rebasing: $0[..<count])) }
        return .notAtEnd
    }

    /// Returns a temporary problem, so that the file is checked again later. Examples of causes are too many open files, missing
    /// permissions and an unreadable disk.
    private static func trouble(_ number: Int32, with url: URL) -> FileTrouble {
        FileTrouble(why: "\(url.path): " + String(cString: strerror(number)), isPassing: true)
    }

    /// Decides what follows if the checked file is not the verified file. Returns `nil` if the file at the other path must be
    /// checked next.
    private func next(_ state: inout State, isThere: Bool) -> Finding? {
        if state.descriptor >= 0 { close(state.descriptor) }
        state.descriptor = -1
        // A different file at the path of the partial file does not show that the partial file was renamed.
        guard state.isAtPart, !isThere else { return .isGone }
        // The folder may differ from the earlier folder, for example because it is on another drive. The agent did not rename a
        // file in such a folder, so only a file with the expected content is accepted there.
        let folder = expectation.whole.deletingLastPathComponent().path
        if !expectation.mustMatch, expectation.folder?.isUnchanged(at: folder) ?? true {
            if let replaced = expectation.replaced, FileIdentity(expectation.whole.path)?.text == replaced { return .isGone }
            var information = stat()
            guard calls.status(of: expectation.whole.path, &information) != 0 else { return .isPlaced }
            let number = errno
            switch FileFault(number) {
            case .missing, .noFolder, .notAFile: return .isGone
            case .exists, .unsupported, .impossible, .noRoom, .notAllowed, .unavailable:
                return .unreadable(Self.trouble(number, with: expectation.whole))
            }
        }
        (state.isAtPart, state.hashed, state.digest) = (false, 0, RunningDigest())
        return nil
    }
}
