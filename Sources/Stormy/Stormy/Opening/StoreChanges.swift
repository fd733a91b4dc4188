import BackgroundRuntime
import Foundation
import GRDB
import Synchronization

/// The content of the store that is shown to the user.
package struct StoreContent: Equatable, Sendable {
    package var places: [Place]
    package var checks: [CheckRecord]
    /// The storms that have not ended.
    package var storms: [StormRecord]
    /// The photo requests that wait for a photo, and the photos that are not sent because of their location.
    package var photos: [PhotoRecord]
}

extension StormyStore {
    /// Returns a stream that yields the content of the store now, and again after each commit that changed the content, in any
    /// process.
    ///
    /// The stream ends with an error if the store cannot be read. Each commit causes four small queries.
    package func contents() -> AsyncThrowingStream<StoreContent, any Error> {
        AsyncThrowingStream { continuation in
            let observation = ValueObservation.tracking(Self.read).removeDuplicates()
                .start(
                    in: queue.database, scheduling: .async(onQueue: DispatchQueue(label: "store-looks")),
                    onError: { continuation.finish(throwing: $0) }, onChange: { continuation.yield($0) })
            // GRDB observes only the writes of this process. The change notification reports the writes of other processes.
            let watch = DatabaseWatch(database: queue.path)
            let others = ExternalWrites(queue.database)
            let token = watch.add { others.check() }
            // Another process may have written between the first read and the registration for change notifications.
            others.check()
            continuation.onTermination = { _ in
                observation.cancel()
                token.cancel()
                others.end()
                withExtendedLifetime(watch) {}
            }
        }
    }

    private static func read(_ database: Database) throws -> StoreContent {
        StoreContent(
            places: try Place.order(Column("id")).fetchAll(database), checks: try CheckRecord.fetchAll(database),
            storms: try StormRecord.filter(sql: StormRecord.isOpen).order(Column("id")).fetchAll(database),
            photos: try PhotoRecord.filter(["awaitingPhoto", "held"].contains(Column("state"))).order(Column("id"))
                .fetchAll(database))
    }
}

/// Notifies GRDB of commits of other processes, so that GRDB reads the store again.
private final class ExternalWrites: Sendable {
    private let database: DatabaseQueue
    private let queue = DispatchQueue(label: "store-others")
    private let isOver = Mutex(false)
    private let retry = ReadRetry()

    init(_ database: DatabaseQueue) { self.database = database }

    func check() { queue.async { self.readChangesNow() } }

    func end() { isOver.withLock { $0 = true } }

    /// The change notification arrives slightly before the commit can be read. For this reason, GRDB reads inside a write
    /// transaction, which waits for the writing process.
    private func readChangesNow() {
        if isOver.withLock({ $0 }) { return }
        do {
            try database.write { try $0.notifyChanges(in: .fullDatabase) }
            retry.succeeded()
        } catch {
            if !retry.isFailing { logError("the changes of another process cannot be read yet: \(error)") }
            retry.failed { self.check() }
        }
    }
}
