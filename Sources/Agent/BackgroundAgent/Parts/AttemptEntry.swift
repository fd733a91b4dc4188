import BackgroundLedger
import TransferMachines

extension Attempts {
    /// What this agent does for one transfer.
    struct Entry {
        enum Phase {
            case idle
            /// Committed, and not yet handed to the transport.
            case prepared(PreparedAttempt)
            case running(RunningAttempt)
            /// Its part is being made durable.
            case stopping(AttemptID, AttemptTraits, DownloadFile?)
            /// Whole and proven: its file gets its name, or is looked at again.
            ///
            /// - Parameter checks: How often the file was not what was proven.
            case finishing(FileSight?, checks: Int)
        }

        var phase = Phase.idle
        /// Of an upload: where its protocol stands.
        var machine: UploadMachine?
        /// How often in a row it reached nobody.
        var unreached = 0
        /// How often its server answered that an address does not exist.
        var notFound = 0

        var isIdle: Bool { if case .idle = phase { true } else { false } }
        var isForgettable: Bool { isIdle && machine == nil && unreached == 0 && notFound == 0 }

        /// How often the file was not what was proven. `nil` if the file does not get its name now.
        var checks: Int? { if case .finishing(_, let checks) = phase { checks } else { nil } }

        var running: RunningAttempt? { if case .running(let attempt) = phase { attempt } else { nil } }

        /// Whom it keeps busy.
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
