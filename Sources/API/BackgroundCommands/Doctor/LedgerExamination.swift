import BackgroundLedger
import Foundation
import ProcessSupport

/// Examines the ledger: whether it can be read, and whether a process blocks it.
struct LedgerExamination: Examination {
    private let check = "ledger"

    func findings(_ app: ExaminedApp) -> [DoctorFinding] {
        let path = app.directories.ledger.path
        let isBusy = if case .failure(.busy) = app.ledger { true } else { false }
        // If a signal stops a process during a write, no other process can write, but all processes can still read.
        if let holder = LockHolder.find(database: path), holder.isStopped || isBusy {
            let fix = holder.isStopped ? DoctorFinding.Fix("kill -CONT \(holder.pid)") : nil
            return [DoctorFinding(check, .failed, "\(path) is locked by \(holder)", fix: fix)]
        }
        switch app.ledger {
        case .success(.missing): return [DoctorFinding(check, .ok, "No work has been scheduled yet.")]
        case .success(.ofAnEarlierVersion):
            return [
                DoctorFinding(
                    check, .warning,
                    "\(path) was written by an earlier version of the app. The app's next command upgrades the file",
                    fix: .init("\(app.command) why", isSafe: true))
            ]
        case .success(.found): return [DoctorFinding(check, .ok, "The agent's database (ledger) is intact.")]
        case .failure(let error): return [DoctorFinding(check, .failed, "\(error)", fix: fix(error, path))]
        }
    }

    /// Returns a fix that renames a damaged ledger and the files that belong to it. The queued work is then lost. For this reason
    /// the fix is not marked as safe, and the user has to decide.
    private func fix(_ error: StoreError, _ path: String) -> DoctorFinding.Fix? {
        guard case .notADatabase = error else { return nil }
        let aside = ["", "-wal", "-shm"].map { ending -> String in
            let (from, to) = (ShellWord.quoted(path + ending), ShellWord.quoted(path + ".damaged" + ending))
            return ending.isEmpty ? "mv \(from) \(to)" : "{ [ ! -e \(from) ] || mv \(from) \(to); }"
        }
        return .init(aside.joined(separator: " && "))
    }
}
