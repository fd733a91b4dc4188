import ArgumentParser
import BackgroundLedger
import Foundation

/// Finds transfers that do not continue before the user runs a command.
struct TransfersExamination: Examination {
    private let check = "transfers"

    func findings(_ app: ExaminedApp) -> [DoctorFinding] {
        guard let books = app.books else { return [] }
        var rows: [DoctorFinding] = []
        if let count = books.transfers[.paused] {
            rows.append(DoctorFinding(check, .warning, "\(Self.words(count)) paused", fix: fix("resume", app)))
        }
        if let count = books.transfers[.failed] {
            rows.append(DoctorFinding(check, .warning, "\(Self.words(count)) failed", fix: fix("retry", app)))
        }
        if books.missingCopies > 0 {
            rows.append(
                DoctorFinding(check, .warning, Self.sentence(missingCopies: books.missingCopies, in: app.directories.spool)))
        }
        return rows.isEmpty ? [DoctorFinding(check, .ok, "Nothing needs your attention.")] : rows
    }

    /// Returns a message about uploads for which the spool does not contain the agent's copy of the file any more. The message
    /// also tells the user what to do.
    static func sentence(missingCopies count: Int, in spool: URL) -> String {
        let copies = count == 1 ? "1 queued copy is" : "\(count) queued copies are"
        return "\(copies) missing from \(spool.path). Put the folder with the queued copies back, or upload the files again."
    }

    private static func words(_ count: Int) -> String { "\(count) transfer\(count == 1 ? " is" : "s are")" }

    /// Returns a fix that uses the command `transfers`, or `nil` if the app does not have this command.
    private func fix(_ action: String, _ app: ExaminedApp) -> DoctorFinding.Fix? {
        let verbs = DesktopIntegration.current.commands?.configuration.subcommands ?? []
        guard verbs.contains(where: { $0.configuration.commandName == "transfers" }) else { return nil }
        return .init("\(app.command) transfers \(action) all")
    }
}
