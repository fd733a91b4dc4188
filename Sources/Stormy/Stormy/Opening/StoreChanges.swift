import BackgroundRuntime
import Foundation
import GRDB

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
            // GRDB sees what this process writes. Of what others write the bell tells, slightly before it can be read: GRDB looks again
            // behind the writer, whom a transaction waits for.
            let lookAgain: @Sendable () -> Void = { [queue] in
                do {
                    try queue.write { try $0.notifyChanges(in: .fullDatabase) }
                } catch {
                    logError("what another process wrote cannot be looked at: \(error)")
                }
            }
            let watch = DatabaseWatch(database: queue.path)
            let token = watch.add(lookAgain)
            // What was written between the first look and the bell.
            lookAgain()
            continuation.onTermination = { _ in
                observation.cancel()
                token.cancel()
                withExtendedLifetime(watch) {}
            }
        }
    }

    private static func look(_ database: Database) throws -> StoreLook {
        StoreLook(
            places: try Place.order(Column("id")).fetchAll(database), checks: try CheckRecord.fetchAll(database),
            storms: try StormRecord.filter(Column("isClosed") == false).order(Column("id")).fetchAll(database),
            photos: try PhotoRecord.filter(["awaitingPhoto", "held"].contains(Column("state"))).order(Column("id"))
                .fetchAll(database))
    }
}
