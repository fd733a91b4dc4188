import BackgroundRuntime
import Foundation
import GRDB
import Synchronization

/// What a person is shown of the store.
package struct StoreLook: Equatable, Sendable {
    package var places: [Place]
    package var checks: [CheckRecord]
    /// Those that are not over.
    package var storms: [StormRecord]
    /// Those that wait for something: for a photo, or held back.
    package var photos: [PhotoRecord]
}

extension StormyStore {
    /// What is there now, and again after each commit, of whichever process, that changed it.
    ///
    /// Ends with an error where the store cannot be read. Cost: four small queries for each commit.
    package func looks() -> AsyncThrowingStream<StoreLook, any Error> {
        AsyncThrowingStream { continuation in
            let observation = ValueObservation.tracking(Self.look).removeDuplicates()
                .start(
                    in: queue, scheduling: .async(onQueue: DispatchQueue(label: "store-looks")),
                    onError: { continuation.finish(throwing: $0) }, onChange: { continuation.yield($0) })
            // GRDB sees what this process writes. Of what others write the bell tells.
            let watch = DatabaseWatch(database: queue.path)
            let others = OtherWriters(queue)
            let token = watch.add { others.look() }
            // What was written between the first look and the bell.
            others.look()
            continuation.onTermination = { _ in
                observation.cancel()
                token.cancel()
                others.end()
                withExtendedLifetime(watch) {}
            }
        }
    }

    private static func look(_ database: Database) throws -> StoreLook {
        StoreLook(
            places: try Place.order(Column("id")).fetchAll(database), checks: try CheckRecord.fetchAll(database),
            storms: try StormRecord.filter(sql: StormRecord.isOpen).order(Column("id")).fetchAll(database),
            photos: try PhotoRecord.filter(["awaitingPhoto", "held"].contains(Column("state"))).order(Column("id"))
                .fetchAll(database))
    }
}

/// Has GRDB look again at what other processes have written.
private final class OtherWriters: Sendable {
    private let database: DatabaseQueue
    private let queue = DispatchQueue(label: "store-others")
    private let isOver = Mutex(false)
    private let retry = ReadRetry()

    init(_ database: DatabaseQueue) { self.database = database }

    func look() { queue.async { self.lookNow() } }

    func end() { isOver.withLock { $0 = true } }

    /// The bell rings slightly before what was written can be read. So GRDB looks in a write transaction, which waits for the writer.
    private func lookNow() {
        if isOver.withLock({ $0 }) { return }
        do {
            try database.write { try $0.notifyChanges(in: .fullDatabase) }
            retry.succeeded()
        } catch {
            if !retry.isFailing { logError("what another process wrote cannot be looked at yet: \(error)") }
            retry.failed { self.look() }
        }
    }
}
