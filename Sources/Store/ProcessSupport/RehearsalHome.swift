import Foundation
import Glibc

/// The throw-away home of a rehearsal, in which the clock is the rehearsal's own.
package enum RehearsalHome {
    /// Names the socket at which the rehearsal says what the host is like.
    package static let variable = "BACKGROUND_REHEARSAL"
    /// The file that makes a home a rehearsal's: it holds the socket's name. No variable alone may tell a person's own agent what
    /// time it is.
    package static let mark = "rehearsal"
    /// Seconds by which the rehearsal's clock is ahead, for processes that live for a moment only: verbs and launches.
    package static let clockVariable = "BACKGROUND_REHEARSAL_CLOCK"

    /// The socket of the rehearsal that this process is part of; `nil`: it is part of none.
    package static let socket: String? = {
        guard let path = getenv(variable).map({ String(cString: $0) }), let home = getenv("HOME").map({ String(cString: $0) }),
            let marked = FileManager.default.contents(atPath: home + "/" + mark), marked == Data(path.utf8)
        else { return nil }
        return path
    }()

    /// What the wall clock of this process shows, less what the real one does. Seconds; 0 outside a rehearsal.
    static let clockOffset: Double = {
        guard socket != nil, let text = getenv(clockVariable) else { return 0 }
        return Double(String(cString: text)) ?? 0
    }()
}
