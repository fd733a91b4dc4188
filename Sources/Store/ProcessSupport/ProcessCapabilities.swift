import Foundation

/// The privileges of a process beyond the rights of its user. Source: capabilities(7), proc_pid_status(5).
package struct ProcessCapabilities: Sendable, Equatable {
    /// A capability of Linux. The raw value is the capability's number in linux/capability.h.
    package enum Capability: Int, Sendable {
        /// The right to set a timer that wakes the machine from sleep. User managers of systemd 254 and later have this
        /// capability.
        case wakeAlarm = 35
    }

    private let effective: UInt64

    /// - Parameter status: the text of `/proc/PID/status`.
    package init?(status: String) {
        guard let line = status.split(separator: "\n").first(where: { $0.hasPrefix("CapEff:") }),
            let mask = line.split(whereSeparator: \.isWhitespace).last.flatMap({ UInt64($0, radix: 16) })
        else { return nil }
        effective = mask
    }

    /// - Parameter process: the process number, or `nil` for this process.
    package init?(of process: Int32?) {
        let path = "/proc/\(process.map(String.init) ?? "self")/status"
        guard let text = try? String(contentsOfFile: path, encoding: .utf8) else { return nil }
        self.init(status: text)
    }

    package func has(_ capability: Capability) -> Bool { effective & 1 << UInt64(capability.rawValue) != 0 }
}
