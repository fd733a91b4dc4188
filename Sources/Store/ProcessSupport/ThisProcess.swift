import CLinux
import Foundation

/// Properties of this process that Foundation caches or reports incompletely.
package enum ThisProcess {
    /// The current time zone. Foundation's cached value is reset first, because otherwise the process would always use its first
    /// time zone.
    package static var zone: TimeZone {
        NSTimeZone.resetSystemTimeZone()
        return TimeZone.current
    }

    /// The time of the wall clock, or in a rehearsal, the time of the rehearsal's clock.
    package static var now: Date { Date(timeIntervalSinceNow: RehearsalHome.clockOffset) }

    /// The program and its arguments. `CommandLine.arguments` is not used, because this array is empty if a system file cannot be
    /// opened at that moment. With an empty array, a command would print its help and exit with code 0.
    package static let arguments = list { String(cString: $0) }

    /// The arguments whose bytes are not UTF-8, in the same form as in ``arguments``. In this form, U+FFFD replaces the invalid
    /// bytes, so the argument can be the name of another file.
    package static let unreadableArguments = Set(list { String(validatingCString: $0) == nil ? String(cString: $0) : nil })

    private static func list(_ read: (UnsafePointer<CChar>) -> String?) -> [String] {
        var (list, next) = ([String](), clinux_arguments())
        while let argument = next.pointee {
            if let text = read(argument) { list.append(text) }
            next += 1
        }
        return list
    }

    /// The path of the executable. If an upgrade has replaced the file, this is the path of the new file.
    ///
    /// If `/proc` cannot be read, this is the path with which the kernel started the program. The first argument is not used, because
    /// it can be the name of a foreign program in the current folder.
    package static var executablePath: String {
        if let path = executable(of: getpid())?.path { return path }
        guard let started = clinux_program_path().map({ String(cString: $0) }) else { return "" }
        guard let resolved = realpath(started, nil) else { return started }
        defer { free(resolved) }
        return String(cString: resolved)
    }

    /// `true` if the executable was removed or replaced.
    package static var isDeleted: Bool { Self.executable(of: getpid())?.isDeleted ?? false }

    /// The environment variables of this process. If a test runs a command in the test's process, the test sets other variables
    /// for the command.
    package static var environment: [String: String] { givenEnvironment ?? ProcessInfo.processInfo.environment }
    @TaskLocal package static var givenEnvironment: [String: String]?

    /// `true` if a systemd user manager started this process as the main process of a unit. A child process inherits the variable
    /// with the number of the parent process, so the number is compared with the number of this process.
    package static var isUserManagers: Bool { ProcessInfo.processInfo.environment["SYSTEMD_EXEC_PID"] == "\(getpid())" }

    /// Returns the executable of a process, or `nil` if it is unknown.
    package static func executable(of pid: Int32) -> (path: String, isDeleted: Bool)? {
        guard let path = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/\(pid)/exe") else { return nil }
        let mark = " (deleted)"
        return path.hasSuffix(mark) ? (String(path.dropLast(mark.count)), true) : (path, false)
    }
}
