import BackgroundAgent
import Foundation

// How the agents of a simulated host fare with the files of their transfers.
extension SimulatedHost {
    /// It is as if the disk had no room left.
    package func setDiskFull(_ isFull: Bool) {
        guard isFull else { return fileCalls.fail(by: nil) }
        fileCalls.fail { $0 == .write ? ENOSPC : nil }
    }
}
