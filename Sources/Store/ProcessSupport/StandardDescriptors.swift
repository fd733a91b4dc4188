import Glibc

/// Standard input, output and error of a process that may have been started with closed descriptors.
package enum StandardDescriptors {
    /// Opens a replacement for each closed descriptor. Otherwise the next file that is opened, for example a database, would get the
    /// number, and every message would be written into it. Writing to the replacement fails, as before. Reading from standard input also
    /// fails, because an empty list would be a wrong input. Call this before opening any file.
    package static func occupyClosed() {
        for descriptor in 0...2 where fcntl(Int32(descriptor), F_GETFD) == -1 {
            _ = open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY)
        }
    }

    /// Returns whether the parent process opened the descriptor for writing.
    package static func canWrite(_ descriptor: Int32) -> Bool {
        let flags = fcntl(descriptor, F_GETFL)
        return flags >= 0 && flags & O_ACCMODE != O_RDONLY
    }
}
