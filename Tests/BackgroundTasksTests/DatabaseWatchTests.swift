import BackgroundRuntime
import Testing

@Suite struct DatabaseWatchTests {
    /// The path of the database does not exist, so it cannot be watched. A missing inotify instance would have the same effect as
    /// the missing database.
    @Test(.timeLimit(.minutes(30))) func `listeners are called at intervals if the database cannot be watched`() async {
        let watch = DatabaseWatch(database: "/nowhere/database")
        let (calls, continuation) = AsyncStream.makeStream(of: Void.self)
        let token = watch.add { continuation.yield() }
        var iterator = calls.makeAsyncIterator()
        for _ in 0..<2 { await iterator.next() }
        token.cancel()
    }
}
