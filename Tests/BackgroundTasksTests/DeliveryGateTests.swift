import BackgroundRuntime
import Synchronization
import Testing

@Suite final class DeliveryGateTests: Sendable {
    private let gate = DeliveryGate()
    private let closings = Mutex(0)

    private func close() { gate.close { [self] in closings.withLock { $0 += 1 } } }
    private var count: Int { closings.withLock { $0 } }

    @Test func anEmptyGateClosesAtOnce() {
        close()
        #expect(count == 1)
        #expect(!gate.enter())
    }

    @Test func theLastInsideClosesIt() {
        #expect(gate.enter() && gate.enter())
        close()
        #expect(!gate.enter(), "whoever leaves waits for nobody new")
        gate.leave()
        #expect(count == 0)
        gate.leave()
        #expect(count == 1)
        #expect(!gate.enter())
    }

    @Test func whoLeavesBeforeClosesNothing() {
        #expect(gate.enter())
        gate.leave()
        #expect(count == 0)
        #expect(gate.enter())
        gate.leave()
    }

    @Test func everyOneThatClosesIsCalled() {
        #expect(gate.enter())
        close()
        close()
        gate.leave()
        #expect(count == 2)
        close()
        #expect(count == 3)
    }
}
