import Foundation

// This file contains the parts of a transfer's state, and its events.
extension TransferLife {
    /// The ways in which a transfer can end.
    package enum Outcome: String, Equatable, Sendable {
        case completed
        case failed
        case cancelled
    }

    /// The parties that hold a transfer: the app, the user, or both.
    package struct Holders: OptionSet, Sendable {
        package let rawValue: Int

        package init(rawValue: Int) { self.rawValue = rawValue }

        /// The app holds the transfer with `suspend()`.
        package static let app = Holders(rawValue: 1)
        /// The user holds the transfer with a command.
        package static let person = Holders(rawValue: 2)
    }

    /// The state into which a held transfer changes when the app or the user lets it continue.
    package enum Next: Equatable, Sendable {
        case queued
        case waiting(until: Date)
        /// An attempt is running, and has to be stopped. If the attempt must not be repeated, it has to be completed.
        case running
    }

    /// The phases of a transfer.
    package enum Phase: Equatable, Sendable {
        /// The transfer waits until the app or the user resumes it.
        case held(by: Holders, next: Next)
        /// The transfer begins when its conditions are met and fewer transfers are running than are allowed at the same time.
        case queued
        /// The transfer waits for its next attempt, or for the begin date that the app chose.
        case waiting(until: Date)
        /// An attempt is running, or was running when an agent was killed.
        case running
        /// The file is complete and its digest is correct. The agent renames the file to its final name.
        case finishing
        case ended(Outcome, at: Date)
    }

    /// The demand for a transfer: who has to be notified of the end of the transfer.
    package enum Demand: Equatable, Sendable {
        /// Processes await the transfer. The ledger lists these processes.
        case awaited
        /// No process awaits the transfer any more. An equal request may continue the transfer until this date.
        case graceful(until: Date)
        /// An event will report the end of the transfer to the app.
        case adopted
        /// The transfer ended. Only processes that still await the transfer are notified.
        case unwanted
    }

    /// The data that is kept of an ended transfer.
    package enum Kept: Equatable, Sendable {
        case nothing
        /// The copy of a failed upload, which is kept for a retry.
        case body(until: Date)
        /// The partial file of an ended download. The file is kept for the resume data with this token, or for a retry if the
        /// token is `nil`.
        case part(token: String?, until: Date)
        /// The partial file of a download that was cancelled for resume data. The agent must still report the number of received
        /// bytes.
        case leaving(token: String?, until: Date)
    }

    /// The reason why a transfer waits or failed.
    package struct Reason: Equatable, Sendable {
        /// The number of the `URLError.Code`. `nil` if the transfer does not wait because of an error.
        package var code: Int?
        package var message: String?

        package init(code: Int?, message: String?) { (self.code, self.message) = (code, message) }

        package init(_ trouble: TransferTrouble) { self.init(code: trouble.recordedCode, message: trouble.message) }
    }
}

extension TransferLife {
    /// An event of a transfer.
    package enum Event: Equatable, Sendable {
        // Events that apps and users cause.
        /// Another process awaits the transfer.
        case awaited(now: Date)
        /// The last process that awaited the transfer does not await it any more.
        case left(until: Date)
        /// A task of the app adopted the transfer.
        case adopted(suspended: Bool)
        /// The app suspended the transfer.
        case suspended
        /// The app resumed the transfer, possibly with a begin date.
        case released(notBefore: Date?, now: Date)
        /// The user paused the transfer.
        case paused
        /// The user ended all background work, so the transfer is held. A running transfer is held only if it can be sent again.
        case shelved
        /// The user ended a pause of the transfer.
        case unpaused(now: Date)
        /// The user resumed the transfer, even if the app suspended the transfer.
        case resumed(now: Date)
        /// The user retried the transfer, for example after a failure.
        case retried(now: Date)
        /// The app set or removed the begin date.
        case scheduled(for: Date?, now: Date)
        case cancelled(message: String?, now: Date)
        /// The app cancelled the transfer for resume data. The resume data will refer to the partial file by this token.
        case cancelledKeepingPart(token: String, now: Date)
        /// Resume data was created for the partial file, or no partial file was available.
        case resumeDataMade(hasPart: Bool, now: Date)
        /// Another transfer continues with the partial file.
        case partTaken
        // Events that the agent causes or observes.
        case began
        /// The attempt was stopped, and the received bytes are on the disk.
        case stopped
        /// No agent could try the transfer before this date, so all time limits start at this date.
        case countsReset(now: Date)
        /// More bytes were received than in all earlier attempts.
        case progressed(now: Date)
        case waits(until: Date, Reason)
        /// All bytes were received, and all required digests are correct.
        case proven
        /// The complete file does not exist any more or is damaged.
        case disproven(now: Date)
        case ended(Outcome, Reason?, now: Date)
        /// A new agent found a transfer that was running when an earlier agent was killed.
        case agentDied(now: Date)
        /// The kept data is not needed any more.
        case collected(now: Date)
    }

    /// An action that an event requires.
    package enum Command: Equatable, Sendable {
        /// Notify the app that the transfer ended.
        case reportEnd
        /// Delete the earlier event about the end of the transfer, because another event will be created.
        case forgetReport
        /// Remove the partial file, or the file in the spool.
        case removeFiles
        /// Remove the copy of the request body.
        case removeBody
        /// Reset the counters of attempts to 0.
        case resetCounts
        /// Remove the credentials, because no later attempt needs the credentials.
        case forgetSecrets
    }

    /// The facts that also determine the effect of an event.
    package struct Facts: Equatable, Sendable {
        package var isUpload: Bool
        /// `true` if the transfer can be sent again, or if its protocol can check the state of the server. See
        /// ``TransferRequest/isIdempotent``.
        package var mayBeRepeated: Bool
        /// `true` if an interruption does no harm, because the server reports the number of bytes that it has.
        package var mayBeCut: Bool
        package var hasBody: Bool
        package var hasResumablePart: Bool
        /// `true` if a response arrived, with any HTTP status.
        package var hasAnswer: Bool
        /// A token that can be used for the partial file.
        package var newToken: String
        /// `true` if an upload only checks whether the server has the file. A failed check is not retried, so its copy is removed.
        package var onlyChecks = false

        package init(
            isUpload: Bool, mayBeRepeated: Bool, mayBeCut: Bool, hasBody: Bool, hasResumablePart: Bool, hasAnswer: Bool,
            newToken: String
        ) {
            (self.isUpload, self.mayBeRepeated, self.mayBeCut, self.hasBody) = (isUpload, mayBeRepeated, mayBeCut, hasBody)
            (self.hasResumablePart, self.hasAnswer, self.newToken) = (hasResumablePart, hasAnswer, newToken)
        }
    }
}
