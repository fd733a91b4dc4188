import Glibc

/// Standard input, output and error of a process that may have been started with closed descriptors.
package enum StandardDescriptors {
    /// Opens a replacement for each closed descriptor. Otherwise the next opened file, for example a database, would get the
    /// number of the descriptor, and messages would be written into the file. Writing to a replacement fails, like writing to a
    /// closed descriptor. Reading from a replacement of standard input also fails, because a command must not treat a closed
    /// input as an empty list. Call this method before opening any file.
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
