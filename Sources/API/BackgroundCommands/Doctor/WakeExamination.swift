import BackgroundLedger
import BackgroundRuntime
import BackgroundScheduling
import Foundation
import ProcessSupport
import UserUnits

/// Examines whether the machine can be woken for requests with `wakesSystem`. If no pending request has `wakesSystem`, the only
/// possible finding is that the agent's unit cannot start.
struct WakeExamination {
    private static let check = "wake"
    /// The exit status that systemd reports if it could not give a service the requested capabilities.
    private static let failedCapabilities = "218"
    /// The first version of systemd whose user manager has the capability to set a wake alarm.
    private static let firstVersion = 254

    private let units: UserUnits
    private let environment: [String: String]

    /// - Parameter machine: the current state of the machine, as reported by the agent's program, or `nil` if logind does not
    ///   respond.
    static func findings(_ app: ExaminedApp, _ machine: MachineState?) -> [DoctorFinding] {
        let examination = WakeExamination(
            units: UserUnits(directories: app.directories, environment: app.environment), environment: app.environment)
        // If the agent's service cannot start, only this problem is reported, because everything else depends on the service.
        if let vain = examination.vain { return [vain] }
        guard let books = app.books else { return [] }
        let asking = books.requests.filter(\.wakesSystem).map(\.identifier)
        guard !asking.isEmpty else { return [] }
        let names = asking.joined(separator: ", ")
        let rows = examination.troubles(books.alarm, machine, "\(names) runs late if the machine sleeps: ")
        guard rows.isEmpty else { return rows }
        let alarm = books.alarm?.alarm.map { "The machine is woken at \(Output.moment($0))." }
        return [DoctorFinding(check, .ok, alarm ?? "The machine is woken for \(names).")]
    }

    private func troubles(_ alarm: AlarmReport?, _ machine: MachineState?, _ what: String) -> [DoctorFinding] {
        var rows: [DoctorFinding] = []
        if case .noAlarm(let why) = alarm?.obstacle {
            let version = version
            rows.append(
                DoctorFinding(
                    Self.check, .warning, "\(what)\(why); \(Self.giver(version))",
                    fix: version.map { $0 >= Self.firstVersion } ?? false ? fix : nil))
        }
        guard let machine else {
            return rows + [DoctorFinding(Self.check, .warning, what + WakeObstacle.noSleepManager.words)]
        }
        if machine.isBatteryLow { rows.append(DoctorFinding(Self.check, .warning, what + WakeObstacle.lowBattery.words)) }
        return rows
    }

    static func giver(_ version: Int?) -> String {
        "systemd \(firstVersion) and later grant CAP_WAKE_ALARM to user services that request it"
            + (version.map { "; this system has systemd \($0)" } ?? "")
    }

    // MARK: The unit

    /// The finding that the agent's unit cannot start, because the unit requests a capability that the user manager does not have
    /// any more. `nil` if the unit does not have this problem.
    private var vain: DoctorFinding? {
        guard access(units.wakeDropIn.path, F_OK) == 0, units.hasManager,
            units.property("ExecMainStatus", of: .service) == Self.failedCapabilities
        else { return nil }
        let path = ShellWord.quoted(units.wakeDropIn.path)
        return DoctorFinding(
            Self.check, .failed,
            "\(units.name(.service)) requests CAP_WAKE_ALARM, which the user manager does not have, so the unit does not start",
            fix: .init(
                "rm \(path) && systemctl --user daemon-reload && systemctl --user restart \(units.name(.service))", isSafe: true))
    }

    /// A fix that adds a drop-in file to the agent's unit. The drop-in file requests the capability. The fix first tests whether
    /// the capability is available, because without the capability the service could not start any more.
    private var fix: DoctorFinding.Fix? {
        guard units.hasManager, units.isInstalled(.service), access(units.wakeDropIn.path, F_OK) != 0 else { return nil }
        let setting = "AmbientCapabilities=CAP_WAKE_ALARM"
        let path = ShellWord.quoted(units.wakeDropIn.path)
        let folder = ShellWord.quoted(units.wakeDropIn.deletingLastPathComponent().path)
        return .init(
            "systemd-run --user --quiet --wait --collect -p \(setting) true && mkdir -p \(folder) && "
                + "printf '[Service]\\n\(setting)\\n' > \(path) && systemctl --user daemon-reload && "
                + "systemctl --user restart \(units.name(.service))", isSafe: true)
    }

    // MARK: systemd

    private var version: Int? {
        let systemd = ChildProcess(path: "/usr/bin/env", arguments: ["systemctl", "--version"], environment: environment)
        return (try? systemd.run(within: 5, outputLimit: 4_096)).flatMap { Self.version($0.output) }
    }

    /// Returns the version number of systemd from an output such as "systemd 252 (252.38-1~deb12u1)".
    static func version(_ output: String) -> Int? {
        let parts = output.split(separator: "\n").first?.split(separator: " ") ?? []
        return parts.count > 1 && parts[0] == "systemd" ? Int(parts[1].prefix { $0.isNumber }) : nil
    }
}
