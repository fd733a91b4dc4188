import ProcessSupport
import BackgroundLedger
import BackgroundRuntime
import BackgroundTasks
import Foundation
import Spool

/// The exit codes of the commands, from sysexits.h.
package enum ExitStatus: Int32, CaseIterable {
    case usage = 64
    case badData = 65
    case notFound = 66
    case unavailable = 69
    case cannotCreate = 73
    case inputOutput = 74
    case tryAgain = 75
    case notPermitted = 77
    case badConfiguration = 78
}

/// An error that contains one line of text for the user and an exit code for scripts.
package struct CommandFailure: Error {
    package let status: ExitStatus
    package let message: String

    package init(_ status: ExitStatus, _ message: String) {
        self.status = status
        self.message = message
    }

    /// Creates the message and the exit code for any error that a command throws.
    package init(_ error: any Error) {
        switch error {
        case let failure as CommandFailure: self = failure
        case let error as StoreError: self.init(Self.status(of: error), "\(error)")
        case let error as BGTaskScheduler.Error where error.underlyingError is StoreError:
            self.init(error.underlyingError ?? error)
        case let error as BGTaskScheduler.Error:
            self.init(Self.status(of: error), error.reason.isEmpty ? "\(error.code)" : error.reason)
        case let error as Snapshot.Failure: self.init(Self.status(of: error), "\(error)")
        case let error as NoAgent: self.init(.unavailable, error.description)
        default: self.init(.inputOutput, (error as NSError).localizedDescription)
        }
    }

    /// Creates the failure for a file that could not be created or written in a folder.
    package init(cannotWriteIn folder: URL, _ error: any Error) {
        if let known = error as? CommandFailure {
            self = known
        } else if let known = error as? StoreError {
            self.init(known)
        } else {
            let cause = (error as NSError).userInfo[NSUnderlyingErrorKey] as? NSError
            let reason =
                cause?.domain == NSPOSIXErrorDomain
                ? String(cString: strerror(Int32(cause?.code ?? 0))) : (error as NSError).localizedDescription
            self.init(.cannotCreate, "\(folder.path): \(reason)")
        }
    }

    private static func status(of error: Snapshot.Failure) -> ExitStatus {
        switch error {
        case .missing: .notFound
        case .unreadable: .inputOutput
        case .notAFile, .empty: .badData
        case .changedWhileRead: .tryAgain
        case .noSpace, .cannotWrite: .cannotCreate
        }
    }

    private static func status(of error: StoreError) -> ExitStatus {
        switch error {
        case .cannotCreate, .unsafeFolder: .cannotCreate
        case .newerVersion, .unusableFolder: .badConfiguration
        case .replaced, .unsaved, .busy: .tryAgain
        case .notADatabase, .readOnly, .diskFull, .troubled, .failed: .inputOutput
        }
    }

    private static func status(of error: BGTaskScheduler.Error) -> ExitStatus {
        switch error.code {
        // Errors of the ledger were already handled. The remaining causes are that no agent is available, or that a date or delay
        // is invalid.
        case .unavailable: .unavailable
        case .tooManyPendingTaskRequests, .immediateRunIneligible: .tryAgain
        case .notPermitted: .notPermitted
        }
    }
}
