import Glibc

/// Standard input, output and error of a process whose starter may have closed them.
package enum StandardDescriptors {
    /// Takes the place of those that are closed: the next file that is opened, a database say, would be written to by every message. What is
    /// written there fails, as before, and so does reading from standard input: an empty list is not what was meant. To be called before
    /// anything is opened.
    package static func occupyClosed() {
        for descriptor in 0...2 where fcntl(Int32(descriptor), F_GETFD) == -1 {
            _ = open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY)
        }
    }

    /// It was opened for writing, by whoever started this process.
    package static func canWrite(_ descriptor: Int32) -> Bool {
        let flags = fcntl(descriptor, F_GETFL)
        return flags >= 0 && flags & O_ACCMODE != O_RDONLY
    }
}
