import Spool
import BackgroundLedger
import Foundation
import TransferMachines

/// The digests that are computed while a file arrives. SHA-256 is always computed, and the other digests are computed if the
/// server announced them.
struct ArrivalDigests: Sendable {
    private var running: [RequiredDigest.Algorithm: RunningDigest] = [.sha256: RunningDigest()]

    init(_ wanted: [RequiredDigest.Algorithm]) { for algorithm in wanted { running[algorithm] = RunningDigest(algorithm) } }

    var algorithms: Set<RequiredDigest.Algorithm> { Set(running.keys) }

    mutating func update(_ bytes: UnsafeRawBufferPointer) {
        for algorithm in running.keys { running[algorithm]?.update(bytes) }
    }

    /// Adds a range of an open file to the digests. Returns `false` if the range cannot be read. If the file is too short,
    /// `errno` is 0.
    mutating func update(_ descriptor: Int32, _ range: Range<Int64>, _ calls: FileCalls) -> Bool {
        withUnsafeTemporaryAllocation(byteCount: 1 << 18, alignment: 16) { buffer in
            var position = range.lowerBound
            while position < range.upperBound {
                let wanted = min(buffer.count, Int(range.upperBound - position))
                let count = calls.read(descriptor, buffer.baseAddress, wanted, at: position)
                // The file became shorter while it was read. The next attempt detects the missing bytes and requests these bytes
                // again.
                if count == 0 { errno = 0 }
                guard count > 0 else { return false }
                update(UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(buffer)[..<count]))
                position += Int64(count)
            }
            return true
        }
    }

    /// Returns a digest, or `nil` if the digest was not computed.
    func bytes(_ algorithm: RequiredDigest.Algorithm) -> [UInt8]? { running[algorithm]?.bytes }

    var sha256: String { running[.sha256]?.hex ?? "" }
}
