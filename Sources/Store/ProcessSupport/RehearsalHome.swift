import Foundation
import Glibc

/// The temporary home folder of a rehearsal. The rehearsal controls the clock of the processes that use this folder.
package enum RehearsalHome {
    /// The environment variable with the path of the socket on which the rehearsal publishes the state of the simulated host.
    package static let variable = "BACKGROUND_REHEARSAL"
    /// The name of the file that marks a home folder as the home folder of a rehearsal. The file contains the path of the socket.
    /// The file is necessary, because a variable alone must not change the time of the user's real agent.
    package static let mark = "rehearsal"
    /// The environment variable with the number of seconds by which the rehearsal's clock is ahead. Commands and launches use
    /// this fixed value, because their processes run only for a short time.
    package static let clockVariable = "BACKGROUND_REHEARSAL_CLOCK"

    /// The path of the socket of the rehearsal to which this process belongs, or `nil` outside a rehearsal.
    package static let socket: String? = {
        guard let path = getenv(variable).map({ String(cString: $0) }), let home = getenv("HOME").map({ String(cString: $0) }),
            let marked = FileManager.default.contents(atPath: home + "/" + mark), marked == Data(path.utf8)
        else { return nil }
        return path
    }()

    /// The difference in seconds between the rehearsal's clock and the real clock. The value is 0 outside a rehearsal.
    static let clockOffset: Double = {
        guard socket != nil, let text = getenv(clockVariable) else { return 0 }
        return Double(String(cString: text)) ?? 0
    }()
}
