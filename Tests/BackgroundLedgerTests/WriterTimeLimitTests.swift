import Foundation
import ProcessSupport
import Testing

@Suite struct WriterTimeLimitTests {
    private static let before: [FileIdentity?] = [nil]
    private static let after = [FileIdentity("/")]

    /// Returns how long a process waits if it retries every 10 ms.
    ///
    /// - Parameters:
    ///   - commits: Returns the number of commits after the given number of seconds.
    ///   - holder: Returns the process that holds the lock after the given number of seconds.
    private func wait(commits: (Double) -> Int, holder: (Double) -> RunningProcess?) -> Duration {
        let start = SuspendingClock.now
        var patience = WriterTimeLimit(at: start, writes: Self.before)
        var waited = Duration.zero
        while true {
            waited += .milliseconds(10)
            let seconds = waited / .seconds(1)
            let shouldContinue = patience.shouldContinue(
                at: start.advanced(by: waited), writes: { commits(seconds) % 2 == 0 ? Self.before : Self.after },
                holder: { _ in holder(seconds) })
            if !shouldContinue { return waited }
        }
    }

    private func process(_ pid: Int32, _ state: Character) -> RunningProcess {
        RunningProcess(pid: pid, name: "writer", state: state)
    }

    @Test func `a process waits at most 15 minutes for a queue of writers that commits`() {
        #expect(wait(commits: { Int($0) }, holder: { _ in process(7, "S") }) == .seconds(900))
    }

    @Test func `a process waits at most 15 minutes for a queue whose lock changes its holder`() {
        #expect(wait(commits: { _ in 0 }, holder: { process(Int32($0), "S") }) == .seconds(900))
    }

    @Test func `a stopped writer ends the wait after two seconds`() {
        #expect(wait(commits: { _ in 0 }, holder: { _ in process(7, "T") }) == .seconds(2))
    }

    @Test func `a writer that is stopped after other commits ends the wait two seconds later`() {
        #expect(wait(commits: { Int(min($0, 10)) }, holder: { _ in process(7, "T") }) == .seconds(12))
    }

    @Test func `a writer that sleeps within its transaction ends the wait after five seconds`() {
        #expect(wait(commits: { _ in 0 }, holder: { _ in process(7, "S") }) == .seconds(5))
        #expect(wait(commits: { _ in 0 }, holder: { _ in nil }) == .seconds(5))
    }

    @Test(arguments: ["R", "D"] as [Character])
    func `a process waits at most one minute for a writer that needs a processor or a disk`(_ state: Character) {
        #expect(wait(commits: { _ in 0 }, holder: { _ in process(7, state) }) == .seconds(60))
    }
}
