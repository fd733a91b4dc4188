import Synchronization
import Testing

@testable import Stormy

@Suite(.timeLimit(.minutes(30))) struct LanesTests {
    private final class Work: Sendable {
        private let state = Mutex((now: 0, most: 0, done: [Int]()))

        func begin() {
            state.withLock { state in
                state.now += 1
                state.most = max(state.most, state.now)
            }
        }

        func end(_ number: Int) {
            state.withLock { state in
                state.now -= 1
                state.done.append(number)
            }
        }

        var most: Int { state.withLock { $0.most } }
        var done: [Int] { state.withLock { $0.done } }
    }

    @Test func `at most four items run at once, and all items are completed`() async {
        let work = Work()
        await Lanes(count: 4, patience: .seconds(600)).forEach(of: Array(0..<100)) { number in
            work.begin()
            for _ in 0..<10 { await Task.yield() }
            work.end(number)
        }
        #expect(work.most <= 4)
        #expect(work.done.sorted() == Array(0..<100))
    }

    /// In each lane (one queue of items), one item hangs until all other items are completed.
    @Test func `stalled items do not delay other items`() async {
        let work = Work()
        await Lanes(count: 4, patience: .milliseconds(20)).forEach(of: Array(0..<50)) { number in
            if number < 4 {
                while work.done.count < 46 { await Task.yield() }
            }
            work.end(number)
        }
        #expect(Set(work.done.suffix(4)) == [0, 1, 2, 3])
    }

    /// When the time of a task is up, each remaining item starts, so that it can detect the cancellation.
    @Test func `a cancelled task starts all items`() async {
        let work = Work()
        let task = Task {
            await Lanes(count: 2, patience: .seconds(600)).forEach(of: Array(0..<50)) { number in
                while !Task.isCancelled { await Task.yield() }
                work.end(number)
            }
        }
        task.cancel()
        await task.value
        #expect(work.done.count == 50)
    }
}
