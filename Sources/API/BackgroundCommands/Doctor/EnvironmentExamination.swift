import BackgroundRuntime
import Foundation
import ProcessSupport

/// Examines the environment variables that decide where a program finds its files, its agent and its time zone.
struct EnvironmentExamination: Examination {
    private let check = "environment"

    func findings(_ app: ExaminedApp) -> [DoctorFinding] {
        let rows = agent(app) + folders(app) + zone(app)
        return rows.isEmpty ? [DoctorFinding(check, .ok, "No environment variable causes a problem.")] : rows
    }

    private func agent(_ app: ExaminedApp) -> [DoctorFinding] {
        var rows: [DoctorFinding] = []
        let forbidding = AgentStarter(directories: app.directories).forbiddingVariable
        if app.environment[forbidding] == "1" {
            rows.append(fault(.failed, "\(forbidding)=1 prevents the start of an agent", unsetting: forbidding))
        }
        let named = "BACKGROUND_AGENT"
        if let path = app.environment[named], access(path, X_OK) != 0 {
            rows.append(fault(.warning, "\(named) is ignored, because \(path) is not a program", unsetting: named))
        }
        if app.environment[RehearsalHome.variable] != nil, RehearsalHome.socket == nil {
            let name = RehearsalHome.variable
            rows.append(
                fault(.warning, "\(name) is ignored, because this home folder was not made for a rehearsal", unsetting: name))
        }
        return rows
    }

    private func folders(_ app: ExaminedApp) -> [DoctorFinding] {
        var rows: [DoctorFinding] = []
        for name in ["HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR"] {
            guard let path = app.environment[name], !path.isEmpty, !path.hasPrefix("/") else { continue }
            rows.append(fault(.warning, "\(name) is ignored, because \(path) is not an absolute path", unsetting: name))
        }
        if let path = app.environment["XDG_RUNTIME_DIR"], path.hasPrefix("/"), access(path, F_OK) != 0 {
            rows.append(
                fault(
                    .warning, "XDG_RUNTIME_DIR is a folder that does not exist (\(path)), so the user manager cannot be reached",
                    unsetting: "XDG_RUNTIME_DIR"))
        }
        return rows
    }

    private func zone(_ app: ExaminedApp) -> [DoctorFinding] {
        guard let text = app.environment["TZ"], !text.isEmpty, !Self.isZone(text) else { return [] }
        return [fault(.failed, "TZ is not a time zone (\(text)), so \"noon\" would mean 12:00 UTC", unsetting: "TZ")]
    }

    /// Returns whether a text is a valid time zone: a name in the zone database, the path of a file, or a POSIX rule
    /// ("CET-1CEST").
    static func isZone(_ text: String) -> Bool {
        let name = text.hasPrefix(":") ? String(text.dropFirst()) : text
        if name.hasPrefix("/") { return access(name, R_OK) == 0 }
        if TimeZone(identifier: name) != nil { return true }
        let letters = name.prefix { $0.isLetter }
        return letters.count >= 3 && name.dropFirst(letters.count).first.map { $0.isNumber || "+-".contains($0) } ?? false
    }

    private func fault(_ status: DoctorFinding.Status, _ message: String, unsetting name: String) -> DoctorFinding {
        DoctorFinding(check, status, message, fix: .init("unset \(name)"))
    }
}
