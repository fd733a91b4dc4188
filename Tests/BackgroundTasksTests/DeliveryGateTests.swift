import BackgroundRuntime
import Synchronization
import Testing

@Suite final class DeliveryGateTests: Sendable {
    private let gate = DeliveryGate()
    private let closings = Mutex(0)

    private func close() { gate.close { [self] in closings.withLock { $0 += 1 } } }
    private var count: Int { closings.withLock { $0 } }

    @Test func `an empty gate closes immediately`() {
        close()
        #expect(count == 1)
        #expect(!gate.enter())
    }

    @Test func `a gate closes when the last delivery leaves, and admits no new deliveries`() {
        #expect(gate.enter() && gate.enter())
        close()
        #expect(!gate.enter(), "a closed gate admits no new delivery")
        gate.leave()
        #expect(count == 0)
        gate.leave()
        #expect(count == 1)
        #expect(!gate.enter())
    }

    @Test func `a delivery that leaves an open gate does not close the gate`() {
        #expect(gate.enter())
        gate.leave()
        #expect(count == 0)
        #expect(gate.enter())
        gate.leave()
    }

    @Test func `the action of every close call runs`() {
        #expect(gate.enter())
        close()
        close()
        gate.leave()
        #expect(count == 2)
        close()
        #expect(count == 3)
    }
}
