import Glibc

/// The bytes of a photo, read piece by piece.
package protocol PhotoBytes: AnyObject {
    /// The number of bytes. The number does not change during a search.
    var count: Int { get }

    /// Fills the buffer with the bytes that begin at `offset`.
    ///
    /// - Returns: `false` if the bytes cannot be read, for example because the file became shorter.
    func read(at offset: Int, into buffer: UnsafeMutableRawBufferPointer) -> Bool
}

/// The bytes of an open regular file.
package final class FileBytes: PhotoBytes {
    package let count: Int
    private let descriptor: Int32

    /// - Parameter descriptor: An open file, which the caller closes.
    /// - Returns: `nil` if the descriptor is not a regular file.
    package init?(descriptor: Int32) {
        var information = stat()
        guard fstat(descriptor, &information) == 0, information.st_mode & S_IFMT == S_IFREG else { return nil }
        (self.descriptor, count) = (descriptor, Int(information.st_size))
    }

    package func read(at offset: Int, into buffer: UnsafeMutableRawBufferPointer) -> Bool {
        var filled = 0
        while filled < buffer.count {
            let done = pread(descriptor, buffer.baseAddress! + filled, buffer.count - filled, off_t(offset + filled))
            if done < 0, errno == EINTR { continue }
            guard done > 0 else { return false }
            filled += done
        }
        return true
    }
}

/// Bytes in memory. This type is used for decoded metadata and for tests.
package final class MemoryBytes: PhotoBytes {
    private let bytes: [UInt8]
    package var count: Int { bytes.count }

    package init(_ bytes: [UInt8]) { self.bytes = bytes }

    package func read(at offset: Int, into buffer: UnsafeMutableRawBufferPointer) -> Bool {
        guard offset >= 0, offset <= bytes.count, buffer.count <= bytes.count - offset else { return false }
        bytes.withUnsafeBytes { buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[offset..<offset + buffer.count])) }
        return true
    }
}
