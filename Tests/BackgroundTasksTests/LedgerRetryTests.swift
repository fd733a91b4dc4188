import BackgroundRuntime
import ProcessSupport
import Synchronization
import Testing

/// Tests of reads of the ledger that fail temporarily.
@Suite final class LedgerRetryTests: Sendable {
    private let now = Mutex(SuspendingClock.now)
    private let uses = Mutex(0)

    private func pass(_ time: Duration) { now.withLock { $0 = $0.advanced(by: time) } }

    /// Returns a `LedgerRetry` whose pauses take virtual time.
    private func makePatience() -> LedgerRetry {
        let time: @Sendable () -> SuspendingClock.Instant = { [self] in now.withLock { $0 } }
        return LedgerRetry(now: time) {
            ReadRetry(now: time) { [self] seconds, action in
                pass(.seconds(seconds))
                action()
            }
        }
    }

    private var useCount: Int { uses.withLock { $0 } }

    /// Returns a function that fails `failures` times and then returns the number of its calls.
    private func use(failing failures: Int = 0, _ error: StoreError) -> () throws(StoreError) -> Int {
        { () throws(StoreError) in
            let count = self.uses.withLock { uses in
                uses += 1
                return uses
            }
            if count <= failures { throw error }
            return count
        }
    }

    private let troubled = StoreError.troubled(path: "ledger", reason: "Input/output error")

    @Test func `a use that fails temporarily is repeated until it succeeds`() throws {
        let patience = makePatience()
        #expect(try patience.run(for: .seconds(5), use(failing: 4, troubled)) == 5)
    }

    @Test func `the error is thrown when the time limit is reached`() {
        let patience = makePatience()
        #expect(throws: troubled) { try patience.run(for: .seconds(5), use(failing: .max, troubled)) }
        #expect(useCount == 7)
    }

    @Test func `a call does not wait again for what another call waited for`() {
        let patience = makePatience()
        for _ in 0..<3 { #expect(throws: troubled) { try patience.run(for: .seconds(5), use(failing: .max, troubled)) } }
        #expect(useCount == 7 + 2)
    }

    @Test(arguments: [(5, 1), (60, 6)])
    func `uses that fail slowly end when the time limit is reached`(_ seconds: Int, _ count: Int) {
        let patience = makePatience()
        let use = use(failing: .max, troubled)
        #expect(throws: troubled) {
            try patience.run(for: .seconds(seconds)) { () throws(StoreError) in
                pass(.seconds(11))
                return try use()
            }
        }
        #expect(useCount == count)
    }

    @Test func `a failure long after the last one is waited for again`() {
        let patience = makePatience()
        for _ in 0..<2 {
            #expect(throws: troubled) { try patience.run(for: .seconds(5), use(failing: .max, troubled)) }
            pass(.seconds(60))
        }
        #expect(useCount == 7 + 7)
    }

    @Test(arguments: [StoreError.readOnly(path: "ledger"), .notADatabase(path: "ledger"), .replaced(path: "ledger")])
    func `an error that a retry cannot solve is thrown immediately`(_ error: StoreError) {
        let patience = makePatience()
        #expect(throws: error) { try patience.run(for: .seconds(5), use(failing: .max, error)) }
        #expect(useCount == 1)
    }

    @Test func `failures in a row are reported once for each name`() throws {
        let patience = makePatience()
        func fail() { #expect(throws: troubled) { try patience.run(for: .zero, use(failing: .max, troubled)) } }
        fail()
        #expect(patience.isFirstReport(of: "tasks") && patience.isFirstReport(of: "requests"))
        fail()
        #expect(!patience.isFirstReport(of: "tasks"))
        #expect(try patience.run(for: .zero, { () throws(StoreError) in 1 }) == 1)
        fail()
        #expect(patience.isFirstReport(of: "tasks"))
    }
}
