import CLinux
import Foundation

/// A file in memory that nobody can change any more, as the portal takes pictures and sounds.
struct SealedFile: ~Copyable {
    let descriptor: Int32

    /// `nil`: the system has no memory for it, or no such files.
    init?(_ bytes: [UInt8]) {
        descriptor = clinux_memory_file("notification")
        guard descriptor >= 0 else { return nil }
        var written = 0
        while written < bytes.count {
            let count = bytes.withUnsafeBytes { write(descriptor, $0.baseAddress?.advanced(by: written), bytes.count - written) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return nil }
            written += count
        }
        guard clinux_seal_file(descriptor) == 0 else { return nil }
    }

    deinit { if descriptor >= 0 { close(descriptor) } }
}
