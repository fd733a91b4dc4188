import BackgroundTasks
import Foundation
import GRDB
import StormyWeather

/// A place whose weather is checked.
package struct Place: Codable, Sendable, Equatable, Identifiable {
    package var id: Int64?
    package var name: String
    package var latitude: Double
    package var longitude: Double
    /// The time zone of the place. `nil` until the first forecast.
    package var timeZone: String?
    /// The service that is requested first. `nil` to request the service of the configuration first.
    package var provider: WeatherProvider?

    /// The coordinates of the place. `nil` if the row is damaged.
    package var coordinates: Coordinates? { try? Coordinates(latitude: latitude, longitude: longitude) }
    package var zone: TimeZone { timeZone.flatMap(TimeZone.init(identifier:)) ?? .current }
}

extension Place {
    package init(from decoder: any Decoder) throws {
        let row = try decoder.container(keyedBy: CodingKeys.self)
        id = try row.decodeIfPresent(Int64.self, forKey: .id)
        name = try row.decode(String.self, forKey: .name)
        latitude = try row.decode(Double.self, forKey: .latitude)
        longitude = try row.decode(Double.self, forKey: .longitude)
        timeZone = try row.decodeIfPresent(String.self, forKey: .timeZone)
        // If a later version of Stormy stored the place, the provider may be unknown. If the provider is unknown, the configured
        // service is requested.
        provider = try row.decodeIfPresent(String.self, forKey: .provider).flatMap(WeatherProvider.init(rawValue:))
    }
}

extension Place: StoreRecord {
    package static let databaseTableName = "place"
    package mutating func didInsert(_ inserted: InsertionSuccess) { id = inserted.rowID }
}

extension StormyStore {
    package func places() throws -> [Place] {
        try queue.read { try Place.fetchAll($0, sql: "SELECT * FROM place ORDER BY id") }
    }

    /// Returns the place with a name. Upper and lower case are not distinguished.
    package func place(named name: String) throws -> Place {
        let name = name.precomposedStringWithCanonicalMapping
        guard let place = try queue.read({ try Place.filter(Column("name") == name).fetchOne($0) }) else {
            throw StormyStoreError.noSuchPlace(name)
        }
        return place
    }

    package func addPlace(_ name: String, _ coordinates: Coordinates, provider: WeatherProvider? = nil) throws -> Place {
        try queue.write { database in
            if try Place.filter(Column("name") == name).fetchCount(database) > 0 { throw StormyStoreError.placeExists(name) }
            var place = Place(
                id: nil, name: name, latitude: coordinates.latitude, longitude: coordinates.longitude, timeZone: nil,
                provider: provider)
            try place.insert(database)
            return place
        }
    }

    /// Renames a place. The place keeps its forecast and its storms.
    package func renamePlace(_ name: String, to newName: String) throws {
        var place = try place(named: name)
        try queue.write { database in
            let taken = try Place.filter(Column("name") == newName).fetchOne(database)
            if let taken, taken.id != place.id { throw StormyStoreError.placeExists(newName) }
            place.name = newName
            try place.update(database)
        }
    }

    /// Changes the coordinates of a place. The storms are kept, so that no storm is shown twice. The forecast and the warnings
    /// are deleted, because they are for the old coordinates.
    package func movePlace(_ name: String, to coordinates: Coordinates) throws -> Place {
        var place = try place(named: name)
        try queue.write { database in
            // The warnings of the old coordinates have ended. The storms of these warnings are marked as no longer expected,
            // unless the same storms are expected at the new coordinates.
            let (now, before) = (BGTaskScheduler.now, place)
            var left = Assessment(verdict: .unknown(why: "the place was moved"))
            left.cancelled = try Self.records(of: before, database).flatMap { record, _ in
                record.events(at: before, now: now).flatMap(\.messages)
            }
            try Self.follow(StormCheckData(left, rule: StormRule(), now: now), place: before.id!, database)
            (place.latitude, place.longitude) = (coordinates.latitude, coordinates.longitude)
            // The chosen service may have no forecasts for the new coordinates.
            if place.provider?.service().covers(coordinates) == false { place.provider = nil }
            place.timeZone = nil
            try place.update(database)
            for table in ["forecast", "warning", "checkResult"] {
                try database.execute(sql: "DELETE FROM \(table) WHERE place = ?", arguments: [place.id])
            }
        }
        return place
    }

    /// Removes a place with its forecast and its storms.
    package func removePlace(_ name: String) throws {
        let place = try place(named: name)
        try queue.write { database in
            // The photo request of a deleted storm is cancelled, because no photo can fulfil it.
            try database.execute(
                sql: """
                    UPDATE photo SET state = 'cancelled', message = 'the place was removed'
                    WHERE state = 'awaitingPhoto' AND storm IN (SELECT id FROM storm WHERE place = ?)
                    """, arguments: [place.id])
            try place.delete(database)
        }
    }
}
