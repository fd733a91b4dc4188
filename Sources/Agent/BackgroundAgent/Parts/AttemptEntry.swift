import BackgroundLedger
import TransferMachines

extension Attempts {
    /// The agent's state of a single transfer.
    struct Entry {
        enum Phase {
            case idle
            /// The attempt was planned in a transaction, but was not yet passed to the transport.
            case prepared(PreparedAttempt)
            case running(RunningAttempt)
            /// The attempt was stopped, and its partial file is being synced to the disk.
            case stopping(AttemptID, AttemptTraits, DownloadFile?)
            /// The file is complete and verified. The agent renames the file to its final name, or checks the file again.
            ///
            /// - Parameter checks: The number of times that the file differed from the verified file.
            case finishing(FileVersion?, checks: Int)
        }

        var phase = Phase.idle
        /// The machine of an upload, which contains the state of its protocol.
        var machine: UploadMachine?
        /// The number of consecutive attempts that reached no server.
        var unreached = 0
        /// The number of responses that reported that the address does not exist (status 404).
        var notFound = 0

        var isIdle: Bool { if case .idle = phase { true } else { false } }
        var isForgettable: Bool { isIdle && machine == nil && unreached == 0 && notFound == 0 }

        /// The number of times that the file differed from the verified file. `nil` if the file is not being renamed.
        var checks: Int? { if case .finishing(_, let checks) = phase { checks } else { nil } }

        var running: RunningAttempt? { if case .running(let attempt) = phase { attempt } else { nil } }

        /// The traits of the attempt that uses a connection to the transfer's host. `nil` if no attempt uses a connection.
        var occupied: AttemptTraits? {
            switch phase {
            case .prepared(let attempt): attempt.traits
            case .running(let attempt): attempt.traits
            case .stopping(_, let traits, _): traits
            case .idle, .finishing: nil
            }
        }
    }
}
