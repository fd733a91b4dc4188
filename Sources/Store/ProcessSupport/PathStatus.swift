import Foundation

/// What a path leads to. A fault that passes, for example a file server that restarts, is not reported as an absence.
package enum PathStatus {
    case found(stat)
    case absent
    /// The file system did not answer, with its error number.
    case unreadable(Int32)

    /// Blocks for up to 0.2 s while the file system reports a passing fault.
    ///
    /// - Parameter followingLinks: `false` to look at a link itself.
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

    /// `nil` if nothing has the path, or the file system did not answer.
    package var information: stat? {
        if case .found(let information) = self { return information }
        return nil
    }

    package var isAbsent: Bool {
        if case .absent = self { return true }
        return false
    }

    private static let attempts = 10
    /// Microseconds.
    private static let pause: useconds_t = 20_000
}
