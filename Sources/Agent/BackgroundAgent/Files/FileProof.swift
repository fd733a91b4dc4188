import Spool
import BackgroundLedger
import CLinux
import Foundation
import Synchronization

/// An earlier agent died between proving a file whole and committing that it has its name: what became of it.
package final class FileProof: DiskWork {
    /// What is looked for, and where.
    struct Expectation: Equatable, Sendable {
        var part: URL
        var whole: URL
        /// A file in the spool is ours alone; what stands at a person's destination may be what they made of it since.
        var isInSpool: Bool
        var byteCount: Int64
        var sha256: String
    }

    package enum Finding: Sendable, Equatable {
        /// The part is there, byte for byte: its name is missing.
        case partIsWhole
        /// It has its name already.
        case isPlaced
        case isGone
    }

    private struct State {
        var descriptor: Int32 = -1
        var isAtPart = true
        var hashed: Int64 = 0
        var digest = RunningDigest()
    }

    /// Bytes hashed in one turn.
    private static let turn = 4 << 20

    private let expectation: Expectation
    private let state = Mutex(State())
    private let report: @Sendable (Finding) -> Void

    init(_ expectation: Expectation, report: @escaping @Sendable (Finding) -> Void) {
        (self.expectation, self.report) = (expectation, report)
    }

    deinit { state.withLock { if $0.descriptor >= 0 { close($0.descriptor) } } }

    func work() -> DiskWorker.Rest {
        let finding = state.withLock { state -> Finding? in
            if state.descriptor < 0 {
                let url = state.isAtPart ? expectation.part : expectation.whole
                state.descriptor = clinux_open(url.path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0)
                guard state.descriptor >= 0 else { return next(&state, isThere: errno != ENOENT) }
            }
            guard let isWhole = proof(&state) else { return nil }
            if isWhole { return state.isAtPart ? .partIsWhole : .isPlaced }
            return next(&state, isThere: true)
        }
        guard let finding else { return .more }
        report(finding)
        return .nothing
    }

    /// One turn of hashing; `nil`: not at its end.
    private func proof(_ state: inout State) -> Bool? {
        var buffer = [UInt8](repeating: 0, count: Self.turn)
        let count = pread(state.descriptor, &buffer, buffer.count, off_t(state.hashed))
        guard count >= 0 else { return false }
        guard count > 0 else { return state.hashed == expectation.byteCount && state.digest.hex == expectation.sha256 }
        state.hashed += Int64(count)
        // Longer than it was: not the same.
        guard state.hashed <= expectation.byteCount else { return false }
        buffer.withUnsafeBytes { state.digest.update(UnsafeRawBufferPointer(rebasing: $0[..<count])) }
        return nil
    }

    /// This one is not it. - Returns: `nil`: the other one is looked at next.
    private func next(_ state: inout State, isThere: Bool) -> Finding? {
        if state.descriptor >= 0 { close(state.descriptor) }
        state.descriptor = -1
        // What stands where the part was is no sign that the part got its name.
        guard state.isAtPart, !isThere else { return .isGone }
        if !expectation.isInSpool {
            var information = stat()
            return stat(expectation.whole.path, &information) == 0 ? .isPlaced : .isGone
        }
        (state.isAtPart, state.hashed, state.digest) = (false, 0, RunningDigest())
        return nil
    }
}
