import BackgroundAgent
import Foundation
import RehearsalSupport

extension RehearsedHost {
    /// The fault that the agent's file calls report on this machine. `nil` if file calls do not fail.
    var fileFault: FileCalls.Fault? {
        guard isDiskFull || hasNoDescriptors else { return nil }
        return { [isDiskFull, hasNoDescriptors] call in
            if isDiskFull, call == .write { return ENOSPC }
            return hasNoDescriptors && call == .open ? EMFILE : nil
        }
    }
}
