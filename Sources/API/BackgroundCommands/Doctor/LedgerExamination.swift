import BackgroundLedger
import Foundation
import ProcessSupport

/// The ledger: whether it can be read, and whether somebody holds it.
struct LedgerExamination: Examination {
    private let check = "ledger"

    func findings(_ app: ExaminedApp) -> [DoctorFinding] {
        let path = app.directories.ledger.path
        let isBusy = if case .failure(.busy) = app.ledger { true } else { false }
        // One who was stopped while writing keeps everybody waiting: readers see nothing of it.
        if let holder = LockHolder.find(database: path), holder.isStopped || isBusy {
            let fix = holder.isStopped ? DoctorFinding.Fix("kill -CONT \(holder.pid)") : nil
            return [DoctorFinding(check, .failed, "\(path) is held by \(holder)", fix: fix)]
        }
        switch app.ledger {
        case .success(.missing): return [DoctorFinding(check, .ok, "Nothing has been asked for yet.")]
        case .success(.ofAnEarlierVersion):
            return [
                DoctorFinding(
                    check, .warning, "\(path) is of an earlier version; the next verb brings it to this one",
                    fix: .init("\(app.command) why", isSafe: true))
            ]
        case .success(.found): return [DoctorFinding(check, .ok, "The ledger is whole.")]
        case .failure(let error): return [DoctorFinding(check, .failed, "\(error)", fix: fix(error, path))]
        }
    }

    /// Moving it away loses what is queued, so it is a person's to decide. Its side files belong to it.
    private func fix(_ error: StoreError, _ path: String) -> DoctorFinding.Fix? {
        guard case .notADatabase = error else { return nil }
        let aside = ["", "-wal", "-shm"].map { ending -> String in
            let (from, to) = (ShellWord.quoted(path + ending), ShellWord.quoted(path + ".damaged" + ending))
            return ending.isEmpty ? "mv \(from) \(to)" : "{ [ ! -e \(from) ] || mv \(from) \(to); }"
        }
        return .init(aside.joined(separator: " && "))
    }
}
