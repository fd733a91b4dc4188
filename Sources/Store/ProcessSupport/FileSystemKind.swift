import CLinux

/// Properties of the file system that contains a path. The numbers of the types are from the manual page statfs(2) and the kernel's
/// magic.h.
package enum FileSystemKind {
    /// FUSE, FAT, exFAT and NTFS.
    private static let withoutChangeTimes: Set<UInt32> = [0x6573_5546, 0x4D44, 0x2011_BAB0, 0x5346_544E, 0x7366_746E]

    /// Network file systems and FUSE.
    private static let remote: Set<UInt32> = [
        0x6969, 0x517B, 0xFE53_4D42, 0xFF53_4D42, 0x6573_5546, 0x0102_1997, 0x00C3_6400, 0x5346_414F, 0x7375_7245, 0x564C,
    ]

    /// Returns whether the file system records the time of each change of a file. In other file systems, a program can change a
    /// file and set an old modification time, so that the change is not visible in the times of the file.
    package static func recordsEachChange(at path: String) -> Bool { !withoutChangeTimes.contains(clinux_filesystem_type(path)) }

    /// Returns whether other computers can change the files, without a report of this computer's kernel.
    package static func isRemote(_ path: String) -> Bool { remote.contains(clinux_filesystem_type(path)) }
}
