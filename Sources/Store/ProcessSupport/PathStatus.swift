import Foundation

/// The state of a path, which shows whether a file exists at the path. A temporary error, for example during a restart of a file
/// server, does not mean that the file does not exist.
package enum PathStatus {
    case found(stat)
    case absent
    /// The file system did not provide the state. The value is the error number.
    case unreadable(Int32)

    /// Returns the state of a path. While the file system reports a temporary error, the call blocks the thread for up to 0.2 s.
    ///
    /// - Parameter followingLinks: `false` to examine a link itself and not the link's target.
    package static func at(_ path: String, followingLinks: Bool = true) -> PathStatus {
        var number: Int32 = 0
        for attempt in 0..<attempts {
            if attempt > 0 { usleep(pause) }
            var information = stat()
            if (followingLinks ? stat(path, &information) : lstat(path, &information)) == 0 { return .found(information) }
            number = errno
            let fault = FileFault(number)
            if fault.isAbsence { return .absent }
            guard fault == .unavailable || FileFault.isInterruption(number) else { break }
        }
        return .unreadable(number)
    }

    /// The properties of the file, or `nil` if the path does not exist or the file system did not provide the state.
    package var information: stat? {
        if case .found(let information) = self { return information }
        return nil
    }

    package var isAbsent: Bool {
        if case .absent = self { return true }
        return false
    }

    private static let attempts = 10
    /// The pause in microseconds between two calls while the file system reports a temporary error.
    private static let pause: useconds_t = 20_000
}
