import Foundation

/// Reads a file again if a temporary error, for example the limit of open files, prevents the first read.
package enum RetriedFileRead {
    package struct Unreadable: Error {}

    /// Returns the content of a file. If the file exists and cannot be read, the call blocks the thread for about three seconds.
    ///
    /// - Returns: the content, or `nil` if the file does not exist.
    package static func contents(of url: URL) throws(Unreadable) -> Data? {
        var pause: UInt32 = 10_000
        while true {
            if let data = try? Data(contentsOf: url, options: .mappedIfSafe) { return data }
            if access(url.path, F_OK) != 0, FileFault(errno).isAbsence { return nil }
            guard pause < 2_000_000 else { throw Unreadable() }
            usleep(pause)
            pause *= 2
        }
    }
}
