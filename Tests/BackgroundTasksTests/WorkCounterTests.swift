import BackgroundRuntime
import Synchronization
import Testing

/// Tests of the work for which a process waits before it exits.
@Suite final class WorkCounterTests: Sendable {
    private let work = WorkCounter()
    private let calls = Mutex(0)

    private func callWhenNone() { work.whenNone { [self] in calls.withLock { $0 += 1 } } }
    private var count: Int { calls.withLock { $0 } }

    @Test func `an action is called immediately if nothing is running`() {
        callWhenNone()
        #expect(count == 1 && work.begun == 0)
    }

    @Test func `the action is called once when the last work ends`() {
        work.run {
            work.run { callWhenNone() }
            #expect(count == 0 && !work.isEmpty)
        }
        #expect(count == 1 && work.isEmpty && work.begun == 2)
        work.run {}
        #expect(count == 1)
    }

    @Test func `work that throws counts as ended`() async {
        struct Refused: Error {}
        #expect(throws: Refused.self) { try work.run { throw Refused() } }
        #expect(work.isEmpty && work.begun == 1)
        await work.finished()
    }
}
