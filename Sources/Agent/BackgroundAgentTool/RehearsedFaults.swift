import BackgroundAgent
import Foundation
import RehearsalSupport

extension RehearsedHost {
    /// How the agent's calls on its files fail on this machine; `nil` if they do not.
    var fileFault: FileCalls.Fault? {
        guard isDiskFull || hasNoDescriptors else { return nil }
        return { [isDiskFull, hasNoDescriptors] call in
            if isDiskFull, call == .write { return ENOSPC }
            return hasNoDescriptors && call == .open ? EMFILE : nil
        }
    }
}
