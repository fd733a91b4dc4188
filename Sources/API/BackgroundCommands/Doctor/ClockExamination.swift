import BackgroundRuntime
import Foundation

/// The clock and the time zone. What a clock's mistake is can only be seen against what was written down before.
struct ClockExamination: Examination {
    private let check = "clock"
    /// Seconds that clocks of files and of processes may differ.
    private let tolerance = 120.0

    func findings(_ app: ExaminedApp) -> [DoctorFinding] {
        if let looked = app.books?.lookedAt, looked.timeIntervalSince(app.now) > tolerance {
            return [
                behind("it shows a time before the agent's last look (\(Output.moment(looked, now: app.now)))")
            ]
        }
        let program = AppManifest.executableURL.path
        let made = (try? FileManager.default.attributesOfItem(atPath: program))?[.modificationDate] as? Date
        if let made, made.timeIntervalSince(app.now) > 86_400 {
            return [behind("it shows a time before this program was made (\(Output.moment(made, now: app.now)))")]
        }
        if app.environment["TZ"] == nil, access("/etc/localtime", F_OK) != 0 {
            return [DoctorFinding(check, .warning, "no time zone is set (/etc/localtime): noon is that of UTC")]
        }
        return [DoctorFinding(check, .ok, "\(Output.iso8601(app.now)), \(AppRuntime.shared.zone.identifier)")]
    }

    private func behind(_ reason: String) -> DoctorFinding {
        let root = geteuid() == 0 ? "" : "sudo "
        return DoctorFinding(check, .failed, reason, fix: .init("\(root)timedatectl set-ntp true"))
    }
}
