import BackgroundTasks
import BackgroundTransfer
import GRDB

// A photo that is given again after its upload failed.
extension PhotoUploads {
    /// Continues the failed transfers of photos that are given again.
    ///
    /// The server may have the photo, or a part of it, and only the transfer knows where. A second transfer would send a second copy. The
    /// ledger decides: of two commands at once, one continues the transfer, and the other finds it on its way.
    ///
    /// - Returns: The keys of the transfers that continue. The store knows of them, and of those that had completed after all.
    func continueFailed(_ digests: [String], _ order: BatchOptions) throws -> Set<String> {
        // The address of a transfer does not change: a presigned one may be over.
        guard !order.isAgain, !order.isHeld, !order.destination.isForOneFile else { return [] }
        let failed = try store.failedPhotos(digests, to: order.destination.identity)
        let transfers = try Self.transfers(of: failed).values.filter {
            try $0.state != .cancelled && !BackgroundTransfers.lacksCopy($0.id)
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
}

extension StormyStore {
    /// Photos whose latest upload to a destination failed.
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

    /// Gives photos of this destination its present identity. Earlier versions wrote it without kind and account, and the table in the
    /// configuration may have had another name.
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
