import CLinux
import Foundation

/// The free space on the disk of a file.
package enum DiskSpace {
    /// Returns the minimum free space in bytes, which transfers leave free for the user and the ledger: 2 % of the disk, at most
    /// 64 MiB.
    static func floor(ofTotal bytes: Int64) -> Int64 { min(bytes / 50, 64 << 20) }

    /// Returns the number of bytes that can still be written to the disk of an open file without using the minimum free space.
    /// Returns `nil` if the number is unknown.
    package static func left(on descriptor: Int32) -> Int64? {
        var disk = statvfs()
        guard fstatvfs(descriptor, &disk) == 0, disk.f_blocks > 0 else { return nil }
        return left(disk)
    }

    /// Returns the number of free bytes on the disk of an open file, or `nil` if the file system does not report the number.
    package static func free(on descriptor: Int32) -> Int64? {
        var disk = statvfs()
        guard fstatvfs(descriptor, &disk) == 0, disk.f_blocks > 0 else { return nil }
        return free(disk)
    }

    /// Returns the number of bytes that can still be written to the disk of a folder or file without using the minimum free
    /// space. Returns `nil` if the number is unknown.
    package static func left(at path: String) -> Int64? {
        var disk = statvfs()
        guard statvfs(path, &disk) == 0, disk.f_blocks > 0 else { return nil }
        return left(disk)
    }

    /// Returns whether no more files can be created on the disk, because the disk has no free inodes.
    package static func hasNoFreeInodes(at path: String) -> Bool {
        var disk = statvfs()
        return statvfs(path, &disk) == 0 && disk.f_files > 0 && disk.f_favail == 0
    }

    /// Returns whether the disk of a folder or file is mounted read-only.
    package static func isReadOnly(at path: String) -> Bool {
        var disk = statvfs()
        return statvfs(path, &disk) == 0 && disk.f_flag & UInt(ST_RDONLY) != 0
    }

    private static func left(_ disk: statvfs) -> Int64 {
        max(0, free(disk) - floor(ofTotal: bytes(disk.f_blocks, disk)))
    }

    private static func free(_ disk: statvfs) -> Int64 { bytes(disk.f_bavail, disk) }

    private static func bytes(_ blocks: some BinaryInteger, _ disk: statvfs) -> Int64 {
        let (bytes, overflow) = Int64(clamping: blocks).multipliedReportingOverflow(by: Int64(clamping: disk.f_frsize))
        return overflow ? .max : bytes
    }
}
