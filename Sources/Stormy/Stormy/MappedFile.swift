import Foundation

/// A memory-mapped file of any size. After a range is released, the range does not count as memory of this process.
final class MappedFile {
    private let base: UnsafeMutableRawPointer?
    let count: Int

    /// - Throws: `POSIXError` if `open` or `mmap` fails.
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

    /// The bytes of the file. The data is valid as long as this object exists.
    var data: Data { base.map { Data(bytesNoCopy: $0, count: count, deallocator: .none) } ?? Data() }

    func release(range: Range<Int>) {
        guard let base else { return }
        // The kernel releases only complete pages. The beginning of each range is a page boundary.
        madvise(base + range.lowerBound, range.count, MADV_DONTNEED)
    }
}
