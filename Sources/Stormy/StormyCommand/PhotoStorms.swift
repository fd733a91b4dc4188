import BackgroundCommands
import Stormy

extension StormyStore {
    /// Returns the latest storm at a place that waits for a photo. If no storm waits for a photo, returns the latest storm at the
    /// place.
    ///
    /// - Throws: `CommandFailure` (66) if no place has the name, or if no storm is stored for the place.
    func latestStorm(at name: String) throws -> StormRecord {
        let place = try place(named: name)
        let storms = try storms().filter { $0.place == place.id }.sorted { $0.begins < $1.begins }
        let waiting = Set(try photosOfStorms().filter { $0.state == .awaitingPhoto }.compactMap(\.storm))
        guard let storm = storms.last(where: { $0.id.map(waiting.contains) ?? false }) ?? storms.last else {
            throw CommandFailure(.notFound, "no storm is known at \(name); run the command without --storm")
        }
        return storm
    }

    /// Returns the names of the places of storms. The keys are the numbers of the storms. A storm whose place was removed is left
    /// out.
    func placesOfStorms() throws -> [Int64: String] {
        let places = Dictionary(try places().map { ($0.id, $0.name) }) { first, _ in first }
        return try storms().reduce(into: [:]) { names, storm in
            if let id = storm.id { names[id] = places[storm.place] }
        }
    }

    /// Returns sentences with the names of the storms to which photos were added.
    func stormsOfPhotos(_ photos: Set<Int64>) throws -> [String] {
        let storms = try photosOfStorms().filter { $0.id.map(photos.contains) ?? false }.compactMap(\.storm)
        if storms.isEmpty { return [] }
        let names = try placesOfStorms()
        return Dictionary(grouping: storms) { names[$0] }.sorted { ($0.key ?? "") < ($1.key ?? "") }.map { place, photos in
            let storm = place.map { "the storm at \($0)" } ?? "the storm"
            return "\(PhotoRecord.count(photos.count)) added to \(storm)."
        }
    }
}
