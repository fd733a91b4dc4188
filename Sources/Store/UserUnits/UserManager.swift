import Foundation
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
    /// A moment of the calendar lies before a timer.
    func hasMoment(_ timer: String) throws(UserUnits.Failure) -> Bool
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

    func hasMoment(_ timer: String) throws(UserUnits.Failure) -> Bool {
        try !property("NextElapseUSecRealtime", of: timer).isEmpty
    }

    /// systemctl itself waits for ever.
    @discardableResult
    private func call(_ arguments: [String], seconds: Int = 20) throws(UserUnits.Failure) -> String {
        let child = ChildProcess(
            path: "/usr/bin/env", arguments: ["timeout", "\(seconds)", "systemctl", "--user"] + arguments,
            environment: environment)
        let end: ChildProcess.End
        do throws(ChildProcess.Failure) { end = try child.run(outputLimit: 4_096) } catch { throw UserUnits.Failure("\(error)") }
        let words = end.output.trimmingCharacters(in: .whitespacesAndNewlines)
        switch end.code {
        case 0: return words
        case 124: throw UserUnits.Failure("the user manager does not answer")
        default:
            throw UserUnits.Failure(
                "systemctl --user \(arguments.joined(separator: " ")): \(words.isEmpty ? "\(end.code)" : words)")
        }
    }
}
