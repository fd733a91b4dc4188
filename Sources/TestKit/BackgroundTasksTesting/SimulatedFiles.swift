import BackgroundAgent
import Foundation
import Synchronization

/// The disk of a simulated host, as its agents meet it in the files of their transfers. The disk of one agent is the disk of the next.
final class SimulatedFiles: Sendable {
    private struct State {
        var isFull = false
        var fault: FileCalls.Fault?
        /// Counts the faults: the end of an earlier one means nothing.
        var number = 0
    }

    let calls = FileCalls()
    private let state = Mutex(State())

    func setFull(_ isFull: Bool) {
        state.withLock { $0.isFull = isFull }
        apply()
    }

    /// - Returns: the number of this fault.
    @discardableResult
    func fail(by fault: FileCalls.Fault?) -> Int {
        let number = state.withLock { state in
            state.fault = fault
            state.number += 1
            return state.number
        }
        apply()
        return number
    }

    func endFault(_ number: Int) { if state.withLock({ $0.number == number }) { fail(by: nil) } }

    private func apply() {
        let (isFull, fault) = state.withLock { ($0.isFull, $0.fault) }
        guard isFull || fault != nil else { return calls.fail(by: nil) }
        calls.fail { call in isFull && call == .write ? ENOSPC : fault?(call) }
    }
}

extension SimulatedHost {
    /// It is as if the disk had no room left.
    package func setDiskFull(_ isFull: Bool) { files.setFull(isFull) }

    /// The agents' calls on files of transfers fail as `fault` says, for so many seconds.
    package func failFiles(for seconds: Double, by fault: @escaping FileCalls.Fault) {
        let number = files.fail(by: fault)
        clock.schedule(after: seconds) { [files] in files.endFault(number) }
    }

    /// Every call on files is made again.
    package func mendFiles() { _ = files.fail(by: nil) }
}
