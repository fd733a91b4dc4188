import BackgroundRuntime
import Foundation

/// Examines the clock and the time zone. A wrong clock can be detected only by a comparison with recorded times.
struct ClockExamination: Examination {
    private let check = "clock"
    /// The clock is treated as wrong if the recorded time of the agent's last check is more than this number of seconds in the
    /// future.
    private let tolerance = 120.0

    func findings(_ app: ExaminedApp) -> [DoctorFinding] {
        if let looked = app.books?.lookedAt, looked.timeIntervalSince(app.now) > tolerance {
            return [
                behind("the clock shows a time before the agent's last check (\(Output.moment(looked, now: app.now)))")
            ]
        }
        let program = AppManifest.executableURL.path
        let made = (try? FileManager.default.attributesOfItem(atPath: program))?[.modificationDate] as? Date
        if let made, made.timeIntervalSince(app.now) > 86_400 {
            return [behind("the clock shows a time before this program was built (\(Output.moment(made, now: app.now)))")]
        }
        if app.environment["TZ"] == nil, access("/etc/localtime", F_OK) != 0 {
            return [DoctorFinding(check, .warning, "no time zone is set (/etc/localtime), so \"noon\" means 12:00 UTC")]
        }
        return [DoctorFinding(check, .ok, "\(Output.iso8601(app.now)), \(AppRuntime.shared.zone.identifier)")]
    }

    private func behind(_ reason: String) -> DoctorFinding {
        let root = geteuid() == 0 ? "" : "sudo "
        return DoctorFinding(check, .failed, reason, fix: .init("\(root)timedatectl set-ntp true"))
    }
}
