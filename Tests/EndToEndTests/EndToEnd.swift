import Foundation
import Synchronization
import Testing

/// Tests with real programs, a real bus, a real notification server, and real servers on loopback. Several tests run at the same
/// time, because each test has a separate home, separate ports and separate buses, and needs little processor time.
@Suite(.besideOthers) enum EndToEnd {}

/// Limits the number of concurrent tests of real processes and runs them on threads that may block. The tests wait in system
/// calls for a process or a file. Swift's shared pool has only one thread per processor, so on two processors, two waiting tests
/// would block all other tests.
struct BesideOthers: SuiteTrait, TestTrait, TestScoping {
    let isRecursive = true

    func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        await Turns.shared.take()
        let began = ContinuousClock.now
        let result: Result<Void, any Error>
        do {
            try await withTaskExecutorPreference(ThreadPool.shared) { try await function() }
            result = .success(())
        } catch {
            result = .failure(error)
        }
        Turns.shared.give(back: test, after: began.duration(to: .now))
        try result.get()
    }
}

extension Trait where Self == BesideOthers {
    static var besideOthers: Self { Self() }
}

/// The permissions to run. Each running test has one permission.
private final class Turns: Sendable {
    /// The number of permissions is `END_TO_END_WIDTH`, by default six.
    static let shared = Turns(ProcessInfo.processInfo.environment["END_TO_END_WIDTH"].flatMap { Int($0) } ?? 6)

    private struct State {
        var free: Int
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    private let state: Mutex<State>

    private init(_ count: Int) { state = Mutex(State(free: max(1, count))) }

    func take() async {
        await withCheckedContinuation { continuation in
            let isFree = state.withLock { state -> Bool in
                guard state.free > 0 else {
                    state.waiting.append(continuation)
                    return false
                }
                state.free -= 1
                return true
            }
            if isFree { continuation.resume() }
        }
    }

    /// - Parameter duration: The duration of the test, which is appended to the file `TEST_TIMES` for `Tests/slowest.py`.
    func give(back test: Test, after duration: Duration) {
        let next = state.withLock { state -> CheckedContinuation<Void, Never>? in
            if state.waiting.isEmpty {
                state.free += 1
                return nil
            }
            return state.waiting.removeFirst()
        }
        next?.resume()
        guard let path = ProcessInfo.processInfo.environment["TEST_TIMES"] else { return }
        let descriptor = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
        defer { close(descriptor) }
        let line = Array("\(duration / .seconds(1))\t\(test.id)\n".utf8)
        write(descriptor, line, line.count)
    }
}

/// A pool of threads that may block. The number of threads is higher than the number of concurrent tests.
private final class ThreadPool: TaskExecutor {
    static let shared = ThreadPool(threads: 32)

    // The type is unchecked because the condition guards the jobs.
    private final class Queue: @unchecked Sendable {
        private let condition = NSCondition()
        private var jobs: [UnownedJob] = []

        func append(_ job: UnownedJob) {
            condition.lock()
            jobs.append(job)
            condition.signal()
            condition.unlock()
        }

        func next() -> UnownedJob {
            condition.lock()
            defer { condition.unlock() }
            while jobs.isEmpty { condition.wait() }
            return jobs.removeFirst()
        }
    }

    private let queue = Queue()

    private init(threads: Int) {
        for number in 1...threads {
            let thread = Thread { [unowned self] in
                while true { queue.next().runSynchronously(on: asUnownedTaskExecutor()) }
            }
            thread.name = "end-to-end-\(number)"
            thread.stackSize = 8 << 20
            thread.start()
        }
    }

    func enqueue(_ job: consuming ExecutorJob) { queue.append(UnownedJob(job)) }
}
