import BackgroundLedger
import BackgroundTasks
import Foundation
import Stormy
import StormyConfiguration
import StormyWeather

/// Exit codes of the contract, those of sysexits.h.
enum ExitStatus: Int32 {
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

/// One line for a person, and a code for a script.
struct CommandFailure: Error {
    let status: ExitStatus
    let message: String

    init(_ status: ExitStatus, _ message: String) {
        self.status = status
        self.message = message
    }

    /// What any error of the modules below means for whoever typed the command.
    init(_ error: any Error) {
        switch error {
        case let failure as CommandFailure: self = failure
        case let error as ConfigurationError: self.init(.badConfiguration, "\(error)")
        case let error as LedgerError: self.init(Self.status(of: error), "\(error)")
        case let error as StormyStoreError: self.init(Self.status(of: error), "\(error)")
        case let error as BGTaskScheduler.Error:
            self.init(Self.status(of: error), error.reason.isEmpty ? "\(error.code)" : error.reason)
        case let error as WeatherUnavailable: self.init(.unavailable, "\(error)")
        case let error as WeatherError: self.init(.unavailable, error.message)
        case let error as CoordinateError: self.init(.badData, error.message)
        case let error as OpenMeteoRequestError: self.init(.badData, error.message)
        case let error as Snapshot.Failure: self.init(Self.status(of: error), "\(error)")
        case let error as PhotoUploadError: self.init(.inputOutput, "\(error)")
        case let error as URLError: self.init(.unavailable, error.localizedDescription)
        default: self.init(.inputOutput, (error as NSError).localizedDescription)
        }
    }

    private static func status(of error: LedgerError) -> ExitStatus {
        switch error {
        case .cannotCreate: .cannotCreate
        case .newerVersion: .badConfiguration
        case .busy: .tryAgain
        case .notADatabase, .readOnly, .diskFull, .failed: .inputOutput
        }
    }

    private static func status(of error: StormyStoreError) -> ExitStatus {
        switch error {
        case .cannotOpen: .inputOutput
        case .newerVersion: .badConfiguration
        case .placeExists: .badData
        case .noSuchPlace: .notFound
        }
    }

    private static func status(of error: BGTaskScheduler.Error) -> ExitStatus {
        switch error.code {
        case .unavailable: .inputOutput
        case .tooManyPendingTaskRequests, .immediateRunIneligible: .tryAgain
        case .notPermitted: .notPermitted
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
}
