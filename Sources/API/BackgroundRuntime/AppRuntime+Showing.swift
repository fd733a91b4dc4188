import BackgroundLedger
import Foundation
import ProcessSupport

/// For commands that only show the ledger.
extension AppRuntime {
    /// If there is no ledger yet, none is made, and an empty one in memory takes its place. A ledger in a folder that cannot be read is
    /// not a missing one.
    package func makeNoLedger() {
        guard testHost == nil, access(directories.ledger.path, F_OK) != 0, FileFault(errno) == .missing,
            let empty = try? Ledger(inMemory: directories, makesFolders: false)
        else { return }
        opened.withLock { $0 = $0 ?? Opened(ledger: empty, isIntroduced: true) }
    }

    /// If the ledger cannot be written, a copy in memory takes its place, and standard error says so.
    package func copyUnwritableLedger() {
        guard testHost == nil, access(directories.ledger.path, F_OK) == 0 else { return }
        do throws(StoreError) {
            _ = try ledger()
        } catch {
            switch error {
            case .readOnly, .cannotCreate, .unsafeFolder: break
            case .notADatabase, .newerVersion, .busy, .diskFull, .troubled, .failed, .replaced, .unsaved, .unusableFolder: return
            }
            guard let copy = try? Ledger(copyOf: directories) else { return }
            opened.withLock { $0 = $0 ?? Opened(ledger: copy, isIntroduced: true) }
            reportCopy(because: error)
        }
    }

    package func reportCopy(because error: any Error) {
        report("\(Self.programName): \(error). The stored state is shown, and nothing is changed.")
    }

    /// The ledger of this process is in memory, because there is none on the disk or because that one cannot be written.
    package var hasLedgerInMemory: Bool { opened.withLock { $0?.ledger.isInMemory == true } }
}
