import Glibc

/// Functions for standard input, standard output and standard error, because a process may be started with closed descriptors.
package enum StandardDescriptors {
    /// Opens a replacement for each closed standard descriptor. Without the replacement, the next opened file, for example a
    /// database, would get the number of the closed descriptor. Messages would then be written into this file. Writing to the
    /// replacement fails, like writing to a closed descriptor. Reading from the replacement of standard input also fails, because
    /// a command must not treat a closed input as an empty list. Call this method before any file is opened.
    package static func occupyClosed() {
        for descriptor in 0...2 where fcntl(Int32(descriptor), F_GETFD) == -1 {
            _ = open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY)
        }
    }

    /// Returns whether the descriptor is open for writing. A replacement is not open for writing.
    package static func canWrite(_ descriptor: Int32) -> Bool {
        let flags = fcntl(descriptor, F_GETFL)
        return flags >= 0 && flags & O_ACCMODE != O_RDONLY
    }
}
