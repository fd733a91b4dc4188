import BackgroundRuntime
import Testing

@Suite struct DatabaseWatchTests {
    /// The database is missing, which has the same effect as a missing inotify instance. In contrast to a timer of libdispatch,
    /// the intervals need no descriptor.
    @Test(.timeLimit(.minutes(30))) func `listeners are called at intervals if the database cannot be watched`() async {
        let watch = DatabaseWatch(database: "/nowhere/database")
        let (calls, continuation) = AsyncStream.makeStream(of: Void.self)
        let token = watch.add { continuation.yield() }
        var iterator = calls.makeAsyncIterator()
        for _ in 0..<2 { await iterator.next() }
        token.cancel()
    }
}
