import BackgroundTasks
import BackgroundTransfer
import Foundation
import GRDB
import ProcessSupport

// This extension handles photos that the user adds again after their upload failed.
extension PhotoUploads {
    /// Continues the failed transfers of photos that the user adds again.
    ///
    /// The server may already have the photo or a part of the photo. Only the failed transfer contains the photo's address on the
    /// server, so a new transfer would upload the photo a second time. If two commands run at the same time, only one command
    /// continues the transfer, and the other command finds the running transfer.
    ///
    /// - Returns: The keys of the transfers that continue. The store is updated for these transfers, and for transfers that had
    ///   completed.
    func continueFailed(_ photos: [Prepared], _ order: BatchOptions) throws -> Set<String> {
        // These photos get new transfers: photos that the user sends again, photos that wait, and photos for a presigned address.
        // A presigned address may have expired.
        guard !order.isAgain, !order.isHeld, !order.destination.isForOneFile else { return [] }
        // A file with another name is a new upload, because the server may have refused the first name.
        let names = Dictionary(grouping: photos, by: \.digest).mapValues { Set($0.map { Self.name(of: $0.path) }) }
        let failed = try store.failedPhotos(photos.map(\.digest), to: order.destination.identity).filter { photo in
            guard let digest = photo.digest, let path = photo.path else { return false }
            return names[digest]?.contains(Self.name(of: path)) ?? false
        }
        let transfers = try Self.transfers(of: failed).values.filter {
            // A transfer whose queued copy is damaged is not continued. The photo is copied and sent again. An upload that began after
            // another upload gets a new transfer, because the other upload may have a new transfer too.
            try $0.state != .cancelled && !$0.isFollower && BackgroundTransfers.hasIntactCopy($0.id)
        }
        guard !transfers.isEmpty else { return [] }
        try BackgroundTransfers.perform(.retry, on: .ids(Set(transfers.map(\.id)))) { _ in order.destination.asCredential }
        let after = try Self.transfers(of: failed)
        let continued = failed.compactMap { photo -> PhotoRecord? in
            guard let transfer = photo.submission.flatMap({ after[$0] }), transfer.state == .completed || !transfer.state.hasEnded
            else { return nil }
            var photo = photo
            (photo.state, photo.message, photo.changedAt) = (.queued, nil, BGTaskScheduler.now)
            guard transfer.state == .completed else { return photo }
            (photo.state, photo.remoteURL) = (.completed, transfer.receipt?.url ?? order.destination.url.absoluteString)
            return photo
        }
        try store.change(continued, from: .failed)
        return Set(continued.filter { $0.state == .queued }.compactMap(\.submission))
    }

    private static func name(of path: String) -> String { URL(exactPath: path).lastPathComponent }
}

extension StormyStore {
    /// Returns the photos whose latest upload to a destination failed.
    func failedPhotos(_ digests: [String], to destination: String) throws -> [PhotoRecord] {
        try queue.read { database in
            let statement = try database.cachedStatement(
                sql: """
                    SELECT * FROM photo WHERE digest = ? AND destination = ? AND state <> 'held' ORDER BY id DESC LIMIT 1
                    """)
            return try Set(digests).compactMap { digest in
                try PhotoRecord.fetchOne(statement, arguments: [digest, destination])
            }.filter { $0.state == .failed }
        }
    }

    /// Stores the current identity of this destination in the records of its photos. Earlier versions stored the identity without
    /// kind and account, or with an earlier name of the destination.
    func renameDestination(to destination: PhotoDestination) throws {
        let names = Set(StormySettings.current.destinations.map(\.name)).union([destination.name])
        let identity = destination.identity
        let known = try queue.read { database in
            try String.fetchAll(database, sql: "SELECT DISTINCT destination FROM photo WHERE destination IS NOT NULL")
        }
        let earlier = known.filter { $0 != identity && destination.isMeant(by: $0, among: names) }
        guard !earlier.isEmpty else { return }
        try queue.write { database in
            for earlier in earlier {
                try database.execute(
                    sql: "UPDATE photo SET destination = ? WHERE destination = ?", arguments: [identity, earlier])
            }
        }
    }
}
