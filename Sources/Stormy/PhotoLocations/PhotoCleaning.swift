import Glibc

/// Overwrites the location data in the file of a photo.
package enum PhotoCleaning {
    package struct Report: Sendable, Equatable {
        /// The blocks that contained a location. The array is empty if the file is unchanged.
        package var blocks: [String]
        /// The content credentials that were removed, because they signed the old bytes.
        package var credentials: [String]
    }

    /// Cleans a file that is open for reading and writing.
    ///
    /// Before the file is written, a second search (``LocationProof``) checks that the result does not contain the locations.
    /// After the write, the file is read again. The cleaned file differs from the original only in the reported ranges.
    ///
    /// - Throws: An error if it cannot be proved that the result contains no location. After an error, the file is unchanged,
    ///   unless the error occurred during the write.
    package static func clean(descriptor: Int32) throws(LocationFailure) -> Report {
        guard let file = FileBytes(descriptor: descriptor) else { throw .unreadable }
        return try clean(file, descriptor: descriptor)
    }

    /// - Parameter file: The reader of the file that is open as `descriptor`.
    static func clean(_ file: any PhotoBytes, descriptor: Int32) throws(LocationFailure) -> Report {
        let found = try PhotoLocations(searching: file)
        guard found.isKnownFormat else {
            // A file of an unknown format, for example a text file, is never changed.
            throw found.blocks.first.map { .unproven(block: $0) } ?? .unknownFormat
        }
        let report = Report(blocks: found.blocks, credentials: found.credentials)
        if found.overwrites.isEmpty, found.places.isEmpty { return report }
        var expected: UInt32 = 0
        try found.prove { expected = Deflate.checksum($0, after: expected) }
        for overwrite in found.overwrites { try write(overwrite, descriptor) }
        guard try checksum(of: descriptor, count: file.count) == expected else { throw .unreadable }
        return report
    }

    /// Cleans a file. Returns the fields of `photo-cleaner`'s response. After a success, the fields are "clean" and the names of
    /// the overwritten blocks. After a failure, the fields are a word and a reason. The word is "unreadable" if the format is
    /// unknown, "failed" if the cleaning failed, or "fault" if a system call failed.
    ///
    /// - Parameter path: The path as bytes, because file names need not be UTF-8.
    package static func response(about path: UnsafePointer<CChar>) -> [String] {
        // Only a regular file is cleaned. Without O_NONBLOCK, opening a named pipe would wait for a writer.
        let descriptor = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        guard descriptor >= 0 else {
            return ["fault", "the copy of the photo cannot be opened (\(String(cString: strerror(errno))))"]
        }
        defer { close(descriptor) }
        do throws(LocationFailure) {
            let report = try clean(descriptor: descriptor)
            return ["clean"] + report.blocks + report.credentials
        } catch {
            if error == .unreadable { return ["fault", "\(error)"] }
            return [error == .unknownFormat ? "unreadable" : "failed", "\(error)"]
        }
    }

    private static func write(_ overwrite: Overwrite, _ descriptor: Int32) throws(LocationFailure) {
        let piece = 1 << 20
        for start in stride(from: overwrite.range.lowerBound, to: overwrite.range.upperBound, by: piece) {
            let part = overwrite.cut(to: start..<min(start + piece, overwrite.range.upperBound))
            let bytes: [UInt8]
            switch part.content {
            case .bytes(let content): bytes = content
            case .fill(let byte): bytes = [UInt8](repeating: byte, count: part.range.count)
            }
            var done = 0
            while done < bytes.count {
                let count = bytes.withUnsafeBytes {
                    pwrite(descriptor, $0.baseAddress! + done, bytes.count - done, off_t(start + done))
                }
                if count < 0, errno == EINTR { continue }
                guard count > 0 else { throw .unreadable }
                done += count
            }
        }
    }

    private static func checksum(of descriptor: Int32, count: Int) throws(LocationFailure) -> UInt32 {
        guard let file = FileBytes(descriptor: descriptor), file.count == count else { throw .unreadable }
        var checksum: UInt32 = 0
        for start in stride(from: 0, to: count, by: 1 << 20) {
            var bytes = [UInt8](repeating: 0, count: min(1 << 20, count - start))
            guard bytes.withUnsafeMutableBytes({ file.read(at: start, into: $0) }) else { throw .unreadable }
            checksum = Deflate.checksum(bytes, after: checksum)
        }
        return checksum
    }
}
