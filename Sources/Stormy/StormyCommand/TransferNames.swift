import BackgroundCommands
import Foundation
import Stormy

/// The names that `transfers` shows for Stormy's photo requests. A photo request has the name of its storm's place.
struct TransferNames {
    private let photoRequests: [String: String]

    /// Reads the photos of storms and the places from the store.
    init(_ store: StormyStore) throws {
        let places = try store.placesOfStorms()
        photoRequests = try store.photosOfStorms().filter { $0.path == nil }.reduce(into: [:]) { names, photo in
            let place = photo.storm.flatMap { places[$0] }
            names[TransferReport.identifier(of: photo)] = "a photo of the storm" + (place.map { " at \($0)" } ?? "")
        }
    }

    /// Returns the name of a transfer. Returns `nil` if the name of the file or the address describes the transfer best.
    func name(of report: TransferReport) -> String? {
        if report.session == WeatherSession.identifier {
            let host = report.url.value.flatMap(URLComponents.init(string:))?.host
            return "forecast of " + (host ?? "a weather service")
        }
        return photoRequests[report.id]
    }
}
