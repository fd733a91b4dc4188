import Foundation
import Glibc

/// The temporary home of a rehearsal, whose clock the rehearsal controls.
package enum RehearsalHome {
    /// The variable with the name of the socket at which the rehearsal publishes the state of the host.
    package static let variable = "BACKGROUND_REHEARSAL"
    /// The file that marks a home as a rehearsal's. The file contains the name of the socket. A variable alone must not change the time for
    /// the user's own agent.
    package static let mark = "rehearsal"
    /// The variable with the seconds by which the rehearsal's clock is ahead. Used by processes that run only briefly: commands and
    /// launches.
    package static let clockVariable = "BACKGROUND_REHEARSAL_CLOCK"

    /// The socket of the rehearsal that this process belongs to; `nil` if there is none.
    package static let socket: String? = {
        guard let path = getenv(variable).map({ String(cString: $0) }), let home = getenv("HOME").map({ String(cString: $0) }),
            let marked = FileManager.default.contents(atPath: home + "/" + mark), marked == Data(path.utf8)
        else { return nil }
        return path
    }()

    /// The difference in seconds between the wall clock of this process and the real clock; 0 outside a rehearsal.
    static let clockOffset: Double = {
        guard socket != nil, let text = getenv(clockVariable) else { return 0 }
        return Double(String(cString: text)) ?? 0
    }()
}
