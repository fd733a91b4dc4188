import BackgroundCommands
import Foundation
import Stormy
import StormyConfiguration
import StormyWeather

extension CommandFailure {
    /// Converts an error of Stormy's modules into a message for the user, with its exit code.
    init(ofStormy error: any Error) {
        switch error {
        case let error as ConfigurationError: self.init(Self.status(of: error), "\(error)")
        case let error as StormyStoreError: self.init(Self.status(of: error), "\(error)")
        case let error as WeatherUnavailable: self.init(.unavailable, "\(error)")
        case let error as WeatherError: self.init(.unavailable, error.message)
        case let error as CoordinateError: self.init(.badData, error.message)
        case let error as WeatherRequestError: self.init(.badData, error.message)
        case let error as PhotoUploadError:
            if case .isOwnFile = error { self.init(.notPermitted, "\(error)") } else { self.init(.inputOutput, "\(error)") }
        case let error as PhotoChoice.Failure: self.init(.unavailable, "\(error)")
        case let error as URLError: self.init(.unavailable, error.localizedDescription)
        default:
            if let error = StormyStoreError(explaining: error) {
                self.init(Self.status(of: error), "\(error)")
            } else {
                self.init(error)
            }
        }
    }

    private static func status(of error: ConfigurationError) -> ExitStatus {
        guard case .unavailable(_, let isDisk) = error.problem else { return .badConfiguration }
        return isDisk ? .inputOutput : .tryAgain
    }

    private static func status(of error: StormyStoreError) -> ExitStatus {
        switch error {
        case .cannotOpen, .damaged: .inputOutput
        case .busy: .tryAgain
        case .newerVersion: .badConfiguration
        case .placeExists: .badData
        case .noSuchPlace: .notFound
        }
    }
}

extension OwnFiles {
    /// Throws an error if the user chose a file of Stormy, for example the ledger, as the path for a result.
    static func refuse(_ path: String) throws {
        let isOwn: Bool
        do { isOwn = try OwnFiles().contain(path) } catch {
            throw CommandFailure(.inputOutput, "\(path) cannot be checked: \(error.reason)")
        }
        if isOwn { throw CommandFailure(.cannotCreate, "\(path) is a file of Stormy. Choose another name") }
    }
}
