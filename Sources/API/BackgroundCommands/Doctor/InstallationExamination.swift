import BackgroundRuntime
import Foundation
import ProcessSupport

/// Examines the program in `PATH`, and the desktop files if this user installed them.
struct InstallationExamination: Examination {
    private let check = "installation"

    func findings(_ app: ExaminedApp) -> [DoctorFinding] {
        let rows = [other(app), files(app)].compactMap { $0 }
        return rows.isEmpty ? [DoctorFinding(check, .ok, AppManifest.executableURL.path)] : rows
    }

    private func other(_ app: ExaminedApp) -> DoctorFinding? {
        let own = AppManifest.executableURL.resolvingSymlinksInPath()
        let name = own.lastPathComponent
        guard let found = CompanionProgram.findInPath(name, environment: app.environment),
            URL(exactPath: found).resolvingSymlinksInPath().path != own.path
        else { return nil }
        let folder = ShellWord.quoted(own.deletingLastPathComponent().path)
        return DoctorFinding(
            check, .warning, "the command \(name) in your PATH starts another program: \(found)",
            fix: .init("export PATH=\(folder):\"$PATH\""))
    }

    private func files(_ app: ExaminedApp) -> DoctorFinding? {
        let fix = DoctorFinding.Fix("\(app.command) install", isSafe: true)
        do {
            guard let installation = try? InstallCommand.installation(nil), installation.isThere else { return nil }
            let steps = try installation.plan(InstallCommand.files(AppManifest.executableURL.path).all)
            let changes = steps.filter { if case .write = $0 { true } else if case .remove = $0 { true } else { false } }
            guard !changes.isEmpty else { return nil }
            return DoctorFinding(
                check, .warning,
                changes.count == 1
                    ? "1 installed file is missing or has another version"
                    : "\(changes.count) installed files are missing or have another version",
                fix: fix)
        } catch {
            let list = ShellWord.quoted(app.directories.data.appendingPathComponent("installed.json").path)
            return DoctorFinding(
                check, .warning, CommandFailure(error).message, fix: .init("rm \(list) && \(app.command) install"))
        }
    }
}
