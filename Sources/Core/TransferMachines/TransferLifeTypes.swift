import Foundation

// The parts of a transfer's life, and its events.
extension TransferLife {
    /// How a transfer ended.
    package enum Outcome: String, Equatable, Sendable {
        case completed
        case failed
        case cancelled
    }

    /// The parties that hold a transfer.
    package struct Holders: OptionSet, Sendable {
        package let rawValue: Int

        package init(rawValue: Int) { self.rawValue = rawValue }

        /// The app, with `suspend()`.
        package static let app = Holders(rawValue: 1)
        /// The user, with a command.
        package static let person = Holders(rawValue: 2)
    }

    /// The state of a held transfer after its release.
    package enum Next: Equatable, Sendable {
        case queued
        case waiting(until: Date)
        /// The attempt has still to be stopped, or has to finish if it must not be repeated.
        case running
    }

    /// How far a transfer is.
    package enum Phase: Equatable, Sendable {
        /// The transfer waits until its holders release it.
        case held(by: Holders, next: Next)
        /// The transfer begins when a slot is free and its needs are met.
        case queued
        /// The transfer waits for its next attempt, or for the begin date that the app chose.
        case waiting(until: Date)
        /// An attempt is running, or was running when the agent died.
        case running
        /// The file is complete and proven, and gets its final name.
        case finishing
        case ended(Outcome, at: Date)
    }

    /// The demand for a transfer.
    package enum Demand: Equatable, Sendable {
        /// Processes await the transfer; the ledger lists them.
        case awaited
        /// The last await was cancelled. An equal request may still continue the transfer.
        case graceful(until: Date)
        /// An event delivers the end of the transfer.
        case adopted
        /// The transfer ended, and only processes that still await it are notified.
        case unwanted
    }

    /// The data that is kept of an ended transfer.
    package enum Kept: Equatable, Sendable {
        case nothing
        /// The copy of a failed upload, for a retry.
        case body(until: Date)
        /// The part of an ended download, for the resume data with this token; for a retry if the token is `nil`.
        case part(token: String?, until: Date)
        /// The part of a download that was cancelled for resume data. The agent has still to report how much of it was received.
        case leaving(token: String?, until: Date)
    }

    /// Why a transfer waits or failed.
    package struct Reason: Equatable, Sendable {
        /// The error code of `URLError`.
        package var code: Int?
        package var message: String?

        package init(code: Int?, message: String?) { (self.code, self.message) = (code, message) }

        package init(_ trouble: TransferTrouble) { self.init(code: trouble.recordedCode, message: trouble.message) }
    }
}

extension TransferLife {
    /// An event of a transfer.
    package enum Event: Equatable, Sendable {
        // Requests of apps and users.
        /// Another process awaits the transfer.
        case awaited(now: Date)
        /// The last await ended.
        case left(until: Date)
        /// A task is responsible for the transfer from now on.
        case adopted(suspended: Bool)
        /// The app suspended the transfer.
        case suspended
        /// The app released the transfer, possibly with a begin date.
        case released(notBefore: Date?, now: Date)
        /// The user paused the transfer.
        case paused
        /// The user ended all background work. The transfer is held, also if it is running and may be sent again.
        case shelved
        /// The user ended a pause.
        case unpaused(now: Date)
        /// The user resumed the transfer, whatever held it.
        case resumed(now: Date)
        /// The user retried the transfer, also after a failure.
        case retried(now: Date)
        /// The app chose a begin date, or withdrew it.
        case scheduled(for: Date?, now: Date)
        case cancelled(message: String?, now: Date)
        /// The transfer was cancelled, and its resume data will refer to the part by this token.
        case cancelledKeepingPart(token: String, now: Date)
        /// Resume data was made of the part, or no part was available.
        case resumeDataMade(hasPart: Bool, now: Date)
        /// Another transfer continues with the part.
        case partTaken
        // Actions and observations of the agent.
        case began
        /// The attempt was stopped, and the received part is durable.
        case stopped
        /// No agent could try the transfer before, so all time limits start now.
        case countsReset(now: Date)
        /// More bytes were received than ever before.
        case progressed(now: Date)
        case waits(until: Date, Reason)
        /// Every byte was received, and every digest is correct.
        case proven
        /// The proven file is missing or damaged.
        case disproven(now: Date)
        case ended(Outcome, Reason?, now: Date)
        /// A new agent found a transfer that an earlier agent had running.
        case agentDied(now: Date)
        /// The kept data is not needed any more.
        case collected(now: Date)
    }

    /// An action that an event requires.
    package enum Command: Equatable, Sendable {
        /// Notify the app of the end.
        case reportEnd
        /// Forget the earlier notification, because the app is notified of the end again.
        case forgetReport
        /// Remove the part, or the file in the spool.
        case removeFiles
        /// Remove the copy of the body.
        case removeBody
        /// Reset the attempts that were counted against the server.
        case resetCounts
        /// Remove the credentials, because the upload is complete or will not be retried.
        case forgetSecrets
    }

    /// The facts on which the effect of an event also depends.
    package struct Facts: Equatable, Sendable {
        package var isUpload: Bool
        /// `true` if the transfer may be sent again, or its protocol can check the server's state: see ``TransferRequest/isIdempotent``.
        package var mayBeRepeated: Bool
        /// `true` if an interruption does no harm, because the server can be asked how much it has.
        package var mayBeCut: Bool
        package var hasBody: Bool
        package var hasResumablePart: Bool
        /// `true` if a response arrived, whatever its status.
        package var hasAnswer: Bool
        /// A token for the part that no other transfer has.
        package var newToken: String

        package init(
            isUpload: Bool, mayBeRepeated: Bool, mayBeCut: Bool, hasBody: Bool, hasResumablePart: Bool, hasAnswer: Bool,
            newToken: String
        ) {
            (self.isUpload, self.mayBeRepeated, self.mayBeCut, self.hasBody) = (isUpload, mayBeRepeated, mayBeCut, hasBody)
            (self.hasResumablePart, self.hasAnswer, self.newToken) = (hasResumablePart, hasAnswer, newToken)
        }
    }
}
