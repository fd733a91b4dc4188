import Foundation

/// A file as memory, whatever its size: what was looked at is let go, and counts for this process no more.
final class MappedFile {
    private let base: UnsafeMutableRawPointer?
    let count: Int

    /// - Throws: what `open` says, or `mmap`.
    init(_ file: URL) throws {
        let descriptor = open(file.path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
        guard descriptor >= 0 else { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
        defer { close(descriptor) }
        var information = stat()
        guard fstat(descriptor, &information) == 0 else { throw POSIXError(.EIO) }
        count = Int(information.st_size)
        let base = count == 0 ? nil : mmap(nil, count, PROT_READ, MAP_SHARED, descriptor, 0)
        guard base != MAP_FAILED else { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .ENOMEM) }
        self.base = base
    }

    deinit { if let base { munmap(base, count) } }

    /// Its bytes, as long as this lives.
    var data: Data { base.map { Data(bytesNoCopy: $0, count: count, deallocator: .none) } ?? Data() }

    func release(range: Range<Int>) {
        guard let base else { return }
        // Whole pages, the first of which begins where a window does.
        madvise(base + range.lowerBound, range.count, MADV_DONTNEED)
    }
}
