import BackgroundRuntime
import BackgroundTasks
import Foundation
import GRDB
import ProcessSupport

/// The processes that have the record of a photo and have not queued its transfer yet. All of them queue it under one key.
package struct PhotoHolders: RawRepresentable, Codable, Sendable, Equatable {
    /// Number and start of each process: "1234 5678,1300 6000".
    package let rawValue: String

    package init(rawValue: String) { self.rawValue = rawValue }

    package init(_ processes: [ProcessIdentity]) {
        rawValue = processes.map { "\($0.pid) \($0.start)" }.joined(separator: ",")
    }

    /// An entry that cannot be read is left out.
    package var processes: [ProcessIdentity] {
        rawValue.split(separator: ",").compactMap { text in
            let parts = text.split(separator: " ")
            guard parts.count == 2, let pid = Int32(parts[0]), let start = Int64(parts[1]) else { return nil }
            return ProcessIdentity(pid: pid, start: start)
        }
    }
}

extension PhotoHolders {
    static var thisProcess: PhotoHolders { PhotoHolders([AppRuntime.shared.identity]) }

    var addingThisProcess: PhotoHolders {
        let own = AppRuntime.shared.identity
        return processes.contains(own) ? self : PhotoHolders(processes + [own])
    }
}

extension StormyStore {
    /// Photos whose processes ended between this record and the queue. A process that is stopped, for however long, has not ended.
    ///
    /// - Parameter isAlive: whether a process that is about to queue the photo still runs.
    package func lostPhotos(
        isAlive: (ProcessIdentity) -> Bool = AppRuntime.shared.isAlive, now: Date = BGTaskScheduler.now
    ) throws -> [PhotoRecord] {
        let begun = try queue.read {
            try PhotoRecord.fetchAll($0, sql: "SELECT * FROM photo WHERE state = 'queued' AND transfer IS NULL")
        }
        // Most of them have one holder.
        var living: [ProcessIdentity: Bool] = [:]
        return begun.filter { photo in
            // An earlier version recorded no process.
            guard let holders = photo.holders else { return now.timeIntervalSince(photo.changedAt) > 60 }
            return !holders.processes.contains { process in
                let lives = living[process] ?? isAlive(process)
                living[process] = lives
                return lives
            }
        }
    }

    /// Finds lost photos again by the label of their transfer, or gives them back if there is none. A record that changed since it was
    /// found lost stays.
    ///
    /// - Parameters:
    ///   - lost: From ``lostPhotos(isAlive:now:)``. The transfers are read after that: a process may end after it began the transfer.
    ///   - transfers: numbers of the transfers the agent knows, by the photo they carry.
    package func recoverPhotos(_ lost: [PhotoRecord], transfers: [Int64: Int64]) throws {
        try queue.write { database in
            for var photo in lost where try PhotoRecord.fetchOne(database, key: photo.id) == photo {
                if let transfer = transfers[photo.id ?? 0] {
                    photo.transfer = transfer
                } else {
                    photo.state = photo.storm == nil ? .cancelled : .awaitingPhoto
                    photo.path = photo.storm == nil ? photo.path : nil
                }
                photo.holders = nil
                try photo.update(database)
            }
        }
    }
}
