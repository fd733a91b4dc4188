import BackgroundLedger
import BackgroundRuntime
import BackgroundScheduling
import Foundation
import ProcessSupport
import UserUnits

/// Whether the machine is woken for what asks for it. Says nothing where nothing does, but of a unit that asks in vain.
struct WakeExamination {
    private static let check = "wake"
    /// What a service ends with that asks for a capability in vain.
    private static let failedCapabilities = "218"
    /// The first systemd that gives it.
    private static let firstVersion = 254

    private let units: UserUnits
    private let environment: [String: String]

    /// - Parameter machine: as the agent's program sees it now; `nil`: no logind answers.
    static func findings(_ app: ExaminedApp, _ machine: MachineLook?) -> [DoctorFinding] {
        let examination = WakeExamination(
            units: UserUnits(directories: app.directories, environment: app.environment), environment: app.environment)
        // Of a service that does not start everything depends.
        if let vain = examination.vain { return [vain] }
        guard let books = app.books else { return [] }
        let asking = books.requests.filter(\.wakesSystem).map(\.identifier)
        guard !asking.isEmpty else { return [] }
        let rows = examination.troubles(
            books.alarm, machine, "\(asking.joined(separator: ", ")) runs late where the machine sleeps: ")
        guard rows.isEmpty else { return rows }
        let alarm = books.alarm?.alarm.map { "The machine is woken at \(Output.moment($0))." }
        return [DoctorFinding(check, .ok, alarm ?? "The machine is woken for \(asking.joined(separator: ", ")).")]
    }

    private func troubles(_ alarm: AlarmReport?, _ machine: MachineLook?, _ what: String) -> [DoctorFinding] {
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
        "systemd \(firstVersion) and later give it to user services that ask for it" + (version.map { "; this is \($0)" } ?? "")
    }

    // MARK: The unit

    /// The unit asks for a capability that its manager does not have any more.
    private var vain: DoctorFinding? {
        guard access(units.wakeDropIn.path, F_OK) == 0, units.hasManager,
            units.property("ExecMainStatus", of: .service) == Self.failedCapabilities
        else { return nil }
        let path = ShellWord.quoted(units.wakeDropIn.path)
        return DoctorFinding(
            Self.check, .failed,
            "\(units.name(.service)) asks for CAP_WAKE_ALARM, which the user manager does not have: it does not start",
            fix: .init(
                "rm \(path) && systemctl --user daemon-reload && systemctl --user restart \(units.name(.service))", isSafe: true))
    }

    /// Tried first: a service that asks in vain does not start.
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

    /// "systemd 252 (252.38-1~deb12u1)".
    static func version(_ output: String) -> Int? {
        let parts = output.split(separator: "\n").first?.split(separator: " ") ?? []
        return parts.count > 1 && parts[0] == "systemd" ? Int(parts[1].prefix { $0.isNumber }) : nil
    }
}
