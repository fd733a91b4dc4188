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
    /// - Returns: What became of the photos whose transfers continue, or had completed after all, by the positions of the photos.
    func continueFailed(_ photos: [Prepared], _ order: BatchOptions) throws -> [Int: Result] {
        // The address of a transfer does not change: a presigned one may be over.
        guard !order.isAgain, !order.isHeld, !order.destination.isForOneFile else { return [:] }
        let failed = try store.failedPhotos(photos.map(\.digest), to: order.destination.identity)
        let byTransfer = Dictionary(failed.values.compactMap { photo in photo.transfer.map { ($0, photo) } }) { one, _ in one }
        let reconciliation = PhotoReconciliation(store: store)
        let transfers = try BackgroundTransfers.statuses(of: byTransfer.keys.sorted()).filter { status in
            try byTransfer[status.id].map { reconciliation.isOf($0, status) } ?? false && status.state != .cancelled
                && !BackgroundTransfers.lacksCopy(status.id)
        }
        guard !transfers.isEmpty else { return [:] }
        let ids = transfers.map(\.id)
        try BackgroundTransfers.perform(.retry, on: .ids(Set(ids))) { _ in order.destination.asCredential }
        let after = Dictionary(try BackgroundTransfers.statuses(of: ids).map { ($0.id, $0) }) { one, _ in one }
        var (results, continued) = ([Int: Result](), [StormyStore.Continued]())
        for (index, photo) in photos.enumerated() {
            guard let record = failed[photo.digest], let id = record.id, let transfer = record.transfer,
                let status = after[transfer],
                status.state == .completed || !status.state.hasEnded
            else { continue }
            let url = status.state == .completed ? status.receipt?.url ?? order.destination.url.absoluteString : nil
            continued.append(StormyStore.Continued(id: id, new: newPhoto(photo, order), remoteURL: url))
            results[index] =
                url == nil
                ? photo.queued(as: id, transfer, "its failed upload is continued", isContinued: true)
                : .known(photo: id, transfer: transfer, url: url)
        }
        try store.continuePhotos(continued)
        return results
    }
}

extension StormyStore {
    /// Photos whose latest upload to a destination failed, by their digests.
    func failedPhotos(_ digests: [String], to destination: String) throws -> [String: PhotoRecord] {
        try queue.read { database in
            let statement = try database.cachedStatement(
                sql: """
                    SELECT * FROM photo WHERE digest = ? AND destination = ? AND state <> 'held' ORDER BY id DESC LIMIT 1
                    """)
            return try digests.reduce(into: [:]) { found, digest in
                let photo = try PhotoRecord.fetchOne(statement, arguments: [digest, destination])
                guard let photo, photo.state == .failed, photo.transfer ?? Self.noTransfer != Self.noTransfer else { return }
                found[digest] = photo
            }
        }
    }

    /// A failed photo that is given again, and whose transfer continues or has completed.
    struct Continued {
        var id: Int64
        var new: NewPhoto
        /// Where the server has it. `nil` if the transfer continues.
        var remoteURL: String?
    }

    func continuePhotos(_ photos: [Continued]) throws {
        guard !photos.isEmpty else { return }
        try queue.write { database in
            for continued in photos {
                let new = continued.new
                guard var photo = try PhotoRecord.fetchOne(database, key: continued.id), photo.state == .failed else { continue }
                (photo.state, photo.message, photo.changedAt) = (
                    continued.remoteURL == nil ? .queued : .completed, nil, BGTaskScheduler.now
                )
                photo.remoteURL = continued.remoteURL
                photo.tells = photo.tells || new.tells
                try photo.update(database)
                try Self.closeHeld(new.path, new.destination, in: database)
                if let storm = new.storm, photo.storm != storm, new.isPhoto { try Self.closeJob(of: storm, in: database) }
            }
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
