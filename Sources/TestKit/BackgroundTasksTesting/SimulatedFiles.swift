import BackgroundAgent
import Foundation
import Synchronization

/// The disk of a simulated host, for the files of transfers. All agents of the host use the same disk.
final class SimulatedFiles: Sendable {
    private struct State {
        var isFull = false
        var fault: FileCalls.Fault?
        /// The number of faults so far. The number identifies a fault, so that the end of an earlier fault does not end a later
        /// fault.
        var number = 0
    }

    let calls = FileCalls()
    private let state = Mutex(State())

    func setFull(_ isFull: Bool) {
        state.withLock { $0.isFull = isFull }
        apply()
    }

    /// - Returns: The number of this fault.
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
    /// Sets whether the disk is full, so that writes fail.
    package func setDiskFull(_ isFull: Bool) { files.setFull(isFull) }

    /// Makes the agents' file operations of transfers fail as `fault` specifies, for a number of seconds.
    package func failFiles(for seconds: Double, by fault: @escaping FileCalls.Fault) {
        let number = files.fail(by: fault)
        clock.schedule(after: seconds) { [files] in files.endFault(number) }
    }

    /// Ends the fault of file operations.
    package func endFileFault() { _ = files.fail(by: nil) }
}
