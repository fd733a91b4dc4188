import BackgroundLedger
import TransferMachines

extension Attempts {
    /// The agent's state of one transfer.
    struct Entry {
        enum Phase {
            case idle
            /// The attempt is committed, but was not passed to the transport yet.
            case prepared(PreparedAttempt)
            case running(RunningAttempt)
            /// The attempt's part is being made durable.
            case stopping(AttemptID, AttemptTraits, DownloadFile?)
            /// The file is complete and proven. The file gets its final name, or is checked again.
            ///
            /// - Parameter checks: How often the file differed from the proven file.
            case finishing(FileVersion?, checks: Int)
        }

        var phase = Phase.idle
        /// The state of an upload's protocol.
        var machine: UploadMachine?
        /// The number of attempts in a row that reached no server.
        var unreached = 0
        /// The number of responses that reported that the address does not exist.
        var notFound = 0

        var isIdle: Bool { if case .idle = phase { true } else { false } }
        var isForgettable: Bool { isIdle && machine == nil && unreached == 0 && notFound == 0 }

        /// How often the file differed from the proven file. `nil` if the file does not get its name now.
        var checks: Int? { if case .finishing(_, let checks) = phase { checks } else { nil } }

        var running: RunningAttempt? { if case .running(let attempt) = phase { attempt } else { nil } }

        /// The traits of the attempt that uses a connection to the transfer's host; `nil` without such an attempt.
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
