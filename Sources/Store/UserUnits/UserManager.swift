import Foundation
import Glibc
import ProcessSupport

/// The port to a systemd user manager. Each call waits for its answer, but not for ever: a manager may stand still.
package protocol UserManager: Sendable {
    /// It reads all unit files again.
    func reload() throws(UserUnits.Failure)
    /// - Parameter waits: until it runs. `false`: it is only asked for.
    func start(_ unit: String, waits: Bool) throws(UserUnits.Failure)
    /// - Parameter waits: until it runs. `false`: it is only asked for.
    func restart(_ unit: String, waits: Bool) throws(UserUnits.Failure)
    /// It is only asked for.
    func stop(_ unit: String) throws(UserUnits.Failure)
    /// A property that is a text.
    func property(_ name: String, of unit: String) throws(UserUnits.Failure) -> String
    /// The moment of the calendar that a timer waits for; `nil`: none.
    func nextMoment(of timer: String) throws(UserUnits.Failure) -> Date?
    /// The unit that a timer starts.
    func startedUnit(of timer: String) throws(UserUnits.Failure) -> String
    /// The paths of what a unit was read from: its file, and what was added to that.
    func files(of unit: String) throws(UserUnits.Failure) -> [String]
}

extension UserUnits {
    /// Seconds that a user manager which stands still is waited for.
    package static let patience = 20
}

extension UserManager {
    func start(_ unit: String) throws(UserUnits.Failure) { try start(unit, waits: true) }
}

/// Asked by its own command: for processes that do so once.
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
        // A blank within a path is no end of it.
        let paths = (" " + added).components(separatedBy: " /").dropFirst().map { "/" + $0 }
        return [try property("FragmentPath", of: unit)] + paths
    }

    func nextMoment(of timer: String) throws(UserUnits.Failure) -> Date? {
        // In UTC, as it is told to: "Fri 2026-11-27 12:01:33 UTC".
        let words = try Systemctl(environment: environment.merging(["TZ": "UTC"]) { $1 })
            .property("NextElapseUSecRealtime", of: timer)
        let numbers = words.split { !$0.isNumber }.compactMap { Int32($0) }
        guard numbers.count == 6 else { return nil }
        var parts = tm()
        (parts.tm_year, parts.tm_mon, parts.tm_mday) = (numbers[0] - 1900, numbers[1] - 1, numbers[2])
        (parts.tm_hour, parts.tm_min, parts.tm_sec) = (numbers[3], numbers[4], numbers[5])
        return Date(timeIntervalSince1970: Double(timegm(&parts)))
    }

    /// systemctl itself waits for ever.
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
        if end.wasLate { throw UserUnits.Failure("the user manager does not answer") }
        let words = end.output.trimmingCharacters(in: .whitespacesAndNewlines)
        switch end.code {
        case 0: return words
        default:
            throw UserUnits.Failure(
                "systemctl --user \(arguments.joined(separator: " ")): \(words.isEmpty ? "\(end.code)" : words)")
        }
    }
}
