import Foundation
import Glibc
import ProcessSupport

/// The interface to a systemd user manager. Each call waits for a response only for a limited time, because a user manager may
/// hang.
package protocol UserManager: Sendable {
    /// Reads all unit files again.
    func reload() throws(UserUnits.Failure)
    /// - Parameter waits: `true` to wait until the unit is running, `false` to only request the start.
    func start(_ unit: String, waits: Bool) throws(UserUnits.Failure)
    /// - Parameter waits: `true` to wait until the unit is running, `false` to only request the restart.
    func restart(_ unit: String, waits: Bool) throws(UserUnits.Failure)
    /// Requests the stop of a unit. Does not wait until the unit has stopped.
    func stop(_ unit: String) throws(UserUnits.Failure)
    /// Returns a property of a unit. The value of the property is a text.
    func property(_ name: String, of unit: String) throws(UserUnits.Failure) -> String
    /// Returns the next calendar time of a timer, or `nil` if the timer has no next time.
    func nextElapse(of timer: String) throws(UserUnits.Failure) -> Date?
    /// Returns the unit that a timer starts.
    func startedUnit(of timer: String) throws(UserUnits.Failure) -> String
    /// Returns the paths of a unit's file and of its drop-in files.
    func files(of unit: String) throws(UserUnits.Failure) -> [String]
}

extension UserUnits {
    /// The maximum number of seconds to wait for a user manager that does not respond.
    package static let patience = 20
}

extension UserManager {
    func start(_ unit: String) throws(UserUnits.Failure) { try start(unit, waits: true) }
}

/// Calls the user manager with the command `systemctl`, for processes that call the user manager only once.
struct Systemctl: UserManager {
    let environment: [String: String]

    func reload() throws(UserUnits.Failure) { try call(["daemon-reload"]) }

    func start(_ unit: String, waits: Bool) throws(UserUnits.Failure) {
        try call(["start"] + (waits ? [] : ["--no-block"]) + [unit])
    }

    func restart(_ unit: String, waits: Bool) throws(UserUnits.Failure) {
        try call(["restart"] + (waits ? [] : ["--no-block"]) + [unit])
    }

    func stop(_ unit: String) throws(UserUnits.Failure) { try call(["stop", "--no-block", unit]) }

    func property(_ name: String, of unit: String) throws(UserUnits.Failure) -> String {
        try call(["show", "-P", name, unit], seconds: 5)
    }

    func startedUnit(of timer: String) throws(UserUnits.Failure) -> String { try property("Unit", of: timer) }

    func files(of unit: String) throws(UserUnits.Failure) -> [String] {
        let added = try property("DropInPaths", of: unit)
        // The list of paths is split at each space before a slash, because a path itself may contain a space.
        let paths = (" " + added).components(separatedBy: " /").dropFirst().map { "/" + $0 }
        return [try property("FragmentPath", of: unit)] + paths
    }

    func nextElapse(of timer: String) throws(UserUnits.Failure) -> Date? {
        // The variable `TZ` makes the output UTC, for example "Fri 2026-11-27 12:01:33 UTC".
        let words = try Systemctl(environment: environment.merging(["TZ": "UTC"]) { $1 })
            .property("NextElapseUSecRealtime", of: timer)
        let numbers = words.split { !$0.isNumber }.compactMap { Int32($0) }
        guard numbers.count == 6 else { return nil }
        var parts = tm()
        (parts.tm_year, parts.tm_mon, parts.tm_mday) = (numbers[0] - 1900, numbers[1] - 1, numbers[2])
        (parts.tm_hour, parts.tm_min, parts.tm_sec) = (numbers[3], numbers[4], numbers[5])
        return Date(timeIntervalSince1970: Double(timegm(&parts)))
    }

    /// Runs `systemctl` with a time limit, because `systemctl` itself has no time limit.
    @discardableResult
    private func call(_ arguments: [String], seconds: Int = UserUnits.patience) throws(UserUnits.Failure) -> String {
        let child = ChildProcess(
            path: "/usr/bin/env", arguments: ["systemctl", "--user"] + arguments, environment: environment)
        let end: ChildProcess.End
        do throws(ChildProcess.Failure) {
            end = try child.run(within: Double(seconds), outputLimit: 4_096)
        } catch {
            throw UserUnits.Failure("\(error)")
        }
        if end.wasLate { throw UserUnits.Failure("the user manager does not respond") }
        let words = end.output.trimmingCharacters(in: .whitespacesAndNewlines)
        switch end.code {
        case 0: return words
        default:
            throw UserUnits.Failure(
                "systemctl --user \(arguments.joined(separator: " ")): \(words.isEmpty ? "\(end.code)" : words)")
        }
    }
}
