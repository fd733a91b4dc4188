import BackgroundLedger
import BackgroundRuntime
import Foundation
import ProcessSupport
import Synchronization
import Testing

/// Tests of writes in functions that cannot throw, for example `cancel()`.
@Suite struct DurableWritesTests {
    /// A store that refuses some writes, and records the reports about failed writes.
    private final class Store: Sendable {
        private struct State {
            var refusals: [StoreError]
            var written: [String] = []
            var said: [String] = []
        }

        private let state: Mutex<State>
        let calls = OutstandingCalls()

        init(refusing refusals: [StoreError]) {
            state = Mutex(State(refusals: refusals))
            do {
                ledger = try Ledger(inMemory: AppDirectories(appIdentifier: "app", environment: ["HOME": folder.path]))
            } catch {
                fatalError("\(error)")
            }
        }

        deinit { try? FileManager.default.removeItem(at: folder) }

        func refuseNoMore() { state.withLock { $0.refusals = [] } }

        var written: [String] { state.withLock { $0.written } }
        var said: [String] { state.withLock { $0.said } }

        /// In this test, a write is only a name, because the writes do not use the ledger.
        func writes(pause: Double = 0.001) -> DurableWrites {
            DurableWrites(
                firstPause: pause, calls: { self.calls }, report: { line in self.state.withLock { $0.said.append(line) } }
            ) {
                body, _ throws(StoreError) in
                let refusal = self.state.withLock { $0.refusals.isEmpty ? nil : $0.refusals.removeFirst() }
                if let refusal { throw refusal }
                try self.ledger.write(body)
            }
        }

        private let folder = FileManager.default.temporaryDirectory.appendingPathComponent("writes-" + UUID().uuidString)
        let ledger: Ledger

        func add(_ name: String, to writes: DurableWrites) {
            writes.commit(name) { _ in self.state.withLock { $0.written.append(name) } }
        }
    }

    private let full = StoreError.diskFull(path: "ledger")

    @Test func `a write is complete when the call returns`() {
        let store = Store(refusing: [])
        store.add("a cancel", to: store.writes())
        #expect(store.written == ["a cancel"])
        #expect(store.calls.isEmpty && store.said.isEmpty)
    }

    @Test func `a full disk delays writes and loses none`() async {
        // The store refuses so many writes that the test cannot try them all before the disk has space again.
        let store = Store(refusing: Array(repeating: full, count: 10_000))
        let writes = store.writes()
        store.add("a cancel", to: writes)
        #expect(!store.calls.isEmpty, "the process does not exit before the write")
        store.add("a suspend", to: writes)
        store.refuseNoMore()
        await store.calls.finished()
        #expect(store.written == ["a cancel", "a suspend"], "in their order")
        #expect(store.said.count == 1)
        #expect(store.said.first?.hasPrefix("a cancel could not be recorded yet: no space is left") == true)
    }

    /// The caller flushes the delayed writes before it makes a later write. Otherwise, for example, an older cancel could remove
    /// a newer submit.
    @Test func `delayed writes are flushed before later writes`() async {
        let store = Store(refusing: [full])
        let writes = store.writes(pause: 3_600)
        store.add("a cancel", to: writes)
        #expect(store.written.isEmpty)
        #expect(writes.flush() == nil)
        #expect(store.written == ["a cancel"])
        let busy = Store(refusing: [full, full])
        let waiting = busy.writes(pause: 3_600)
        busy.add("a cancel", to: waiting)
        #expect(waiting.flush() == full, "the later write is not done either")
    }

    @Test func `a write that fails permanently is reported`() async {
        let store = Store(refusing: [full, .readOnly(path: "ledger")])
        let writes = store.writes()
        store.add("a cancel", to: writes)
        store.add("a suspend", to: writes)
        await store.calls.finished()
        #expect(store.written == ["a suspend"])
        #expect(store.said.last?.hasPrefix("a cancel was not recorded: ledger cannot be written") == true)
    }
}
