import CLinux
import Foundation

/// What a process has to ask of the system anew, or in a way of its own.
package enum ThisProcess {
    /// The time zone of this moment: a process keeps the zone it started with until it is asked to forget it.
    package static var zone: TimeZone {
        NSTimeZone.resetSystemTimeZone()
        return TimeZone.current
    }

    /// The wall clock. In a rehearsal that of its host.
    package static var now: Date { Date(timeIntervalSinceNow: RehearsalHome.clockOffset) }

    /// The program and its arguments. `CommandLine.arguments` is empty if a file of the system cannot be opened for a moment, and a command
    /// without arguments prints its help and exits with 0.
    package static let arguments = list { String(cString: $0) }

    /// The arguments whose bytes are not UTF-8, as ``arguments`` has them: with U+FFFD, so that they can be the name of another file.
    package static let unreadableArguments = Set(list { String(validatingCString: $0) == nil ? String(cString: $0) : nil })

    private static func list(_ read: (UnsafePointer<CChar>) -> String?) -> [String] {
        var (list, next) = ([String](), clinux_arguments())
        while let argument = next.pointee {
            if let text = read(argument) { list.append(text) }
            next += 1
        }
        return list
    }

    /// The path of its executable. After an upgrade replaced the file, it is that of the new one.
    package static var executablePath: String { Self.executable(of: getpid())?.path ?? arguments.first ?? "" }

    /// Its executable was removed, or replaced by another.
    package static var isDeleted: Bool { Self.executable(of: getpid())?.isDeleted ?? false }

    /// The environment variables of this process. A test that runs a command without a process gives the command its own.
    package static var environment: [String: String] { givenEnvironment ?? ProcessInfo.processInfo.environment }
    @TaskLocal package static var givenEnvironment: [String: String]?

    /// A systemd user manager started it, as a unit's main process. What that process starts inherits the variable with another's number.
    package static var isUserManagers: Bool { ProcessInfo.processInfo.environment["SYSTEMD_EXEC_PID"] == "\(getpid())" }

    /// What a process was started from, where that can be known.
    package static func executable(of pid: Int32) -> (path: String, isDeleted: Bool)? {
        guard let path = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/\(pid)/exe") else { return nil }
        let mark = " (deleted)"
        return path.hasSuffix(mark) ? (String(path.dropLast(mark.count)), true) : (path, false)
    }
}
