import BackgroundRuntime
import Foundation
import ProcessSupport

/// The variables that lead a program to its files, its agent and its clock.
struct EnvironmentExamination: Examination {
    private let check = "environment"

    func findings(_ app: ExaminedApp) -> [DoctorFinding] {
        let rows = agent(app) + folders(app) + zone(app)
        return rows.isEmpty ? [DoctorFinding(check, .ok, "No variable leads it astray.")] : rows
    }

    private func agent(_ app: ExaminedApp) -> [DoctorFinding] {
        var rows: [DoctorFinding] = []
        let forbidding = AgentStarter(directories: app.directories).forbiddingVariable
        if app.environment[forbidding] == "1" {
            rows.append(fault(.failed, "\(forbidding)=1 forbids to start an agent from here", unsetting: forbidding))
        }
        let named = "BACKGROUND_AGENT"
        if let path = app.environment[named], access(path, X_OK) != 0 {
            rows.append(fault(.warning, "\(named) names no program (\(path)), and counts for nothing", unsetting: named))
        }
        if app.environment[RehearsalHome.variable] != nil, RehearsalHome.socket == nil {
            let name = RehearsalHome.variable
            rows.append(
                fault(.warning, "\(name) is set in a home that is no rehearsal's, and counts for nothing", unsetting: name))
        }
        return rows
    }

    private func folders(_ app: ExaminedApp) -> [DoctorFinding] {
        var rows: [DoctorFinding] = []
        for name in ["HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR"] {
            guard let path = app.environment[name], !path.isEmpty, !path.hasPrefix("/") else { continue }
            rows.append(fault(.warning, "\(name) is no absolute path (\(path)), and counts for nothing", unsetting: name))
        }
        if let path = app.environment["XDG_RUNTIME_DIR"], path.hasPrefix("/"), access(path, F_OK) != 0 {
            rows.append(
                fault(
                    .warning, "XDG_RUNTIME_DIR names a folder that is not there (\(path)): no user manager is found through it",
                    unsetting: "XDG_RUNTIME_DIR"))
        }
        return rows
    }

    private func zone(_ app: ExaminedApp) -> [DoctorFinding] {
        guard let text = app.environment["TZ"], !text.isEmpty, !Self.isZone(text) else { return [] }
        return [fault(.failed, "TZ names no time zone (\(text)): noon would be that of UTC", unsetting: "TZ")]
    }

    /// A name of the zone database, a file, or the rule of POSIX ("CET-1CEST").
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
