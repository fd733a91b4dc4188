import Foundation
import Glibc

/// The temporary home folder of a rehearsal. The rehearsal controls the clock of the processes in this home.
package enum RehearsalHome {
    /// The environment variable with the name of the socket on which the rehearsal publishes the state of the simulated host.
    package static let variable = "BACKGROUND_REHEARSAL"
    /// The name of the file that marks a home as the home of a rehearsal. The file contains the name of the socket. The file is
    /// necessary because a variable alone must not change the time of the user's real agent.
    package static let mark = "rehearsal"
    /// The environment variable with the number of seconds by which the rehearsal's clock is ahead. Commands and launches use
    /// this fixed value, because they run only for a short time.
    package static let clockVariable = "BACKGROUND_REHEARSAL_CLOCK"

    /// The socket of the rehearsal that this process belongs to. `nil` if the process belongs to no rehearsal.
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
