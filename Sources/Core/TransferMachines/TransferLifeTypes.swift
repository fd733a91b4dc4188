import Foundation

// What a transfer's life is made of, and what can happen to it.
extension TransferLife {
    /// How it ended.
    package enum Outcome: String, Equatable, Sendable {
        case completed
        case failed
        case cancelled
    }

    /// Who holds a transfer back.
    package struct Holders: OptionSet, Sendable {
        package let rawValue: Int

        package init(rawValue: Int) { self.rawValue = rawValue }

        /// The app, with `suspend()`.
        package static let app = Holders(rawValue: 1)
        /// A person, with a command.
        package static let person = Holders(rawValue: 2)
    }

    /// What a held transfer is when nobody holds it any more.
    package enum Next: Equatable, Sendable {
        case queued
        case waiting(until: Date)
        /// Its attempt is still to be stopped, or let finish where it must not be repeated.
        case running
    }

    /// How far a transfer is.
    package enum Phase: Equatable, Sendable {
        /// It waits for whoever holds it.
        case held(by: Holders, next: Next)
        /// Begins as soon as there is room and what it needs is there.
        case queued
        /// For its next attempt, or for the beginning that the app chose.
        case waiting(until: Date)
        /// An attempt is under way, or was when the agent died.
        case running
        /// Whole and proven: its file is being given its name.
        case finishing
        case ended(Outcome, at: Date)
    }

    /// Who wants a transfer.
    package enum Wish: Equatable, Sendable {
        /// Processes await it; the ledger lists them.
        case awaited
        /// The last await was cancelled: an equal request may still take it up.
        case graceful(until: Date)
        /// Its end is delivered by an event.
        case adopted
        /// It ended, and nobody but those who still await it is to be told.
        case unwanted
    }

    /// What is kept of a transfer that ended.
    package enum Kept: Equatable, Sendable {
        case nothing
        /// The copy of a failed upload, for another try.
        case body(until: Date)
        /// The part of a download that ended, for the resume data that names it; without a name for another try.
        case part(token: String?, until: Date)
        /// Cancelled for its resume data; the agent has still to say how much of it is here.
        case leaving(token: String?, until: Date)
    }

    /// Why it waits or failed.
    package struct Reason: Equatable, Sendable {
        /// `URLError`'s number.
        package var code: Int?
        package var message: String?

        package init(code: Int?, message: String?) { (self.code, self.message) = (code, message) }

        package init(_ trouble: TransferTrouble) { self.init(code: trouble.recordedCode, message: trouble.message) }
    }
}

extension TransferLife {
    /// What happened to a transfer.
    package enum Event: Equatable, Sendable {
        // What apps and people ask for.
        /// Another process awaits it.
        case awaited(now: Date)
        /// Its last await ended.
        case left(until: Date)
        /// A task is responsible for it from now on.
        case adopted(suspended: Bool)
        /// By the app.
        case suspended
        /// By the app, which may have chosen a beginning.
        case released(notBefore: Date?, now: Date)
        /// By a person.
        case paused
        /// By a person who ends all background work: held, also what is under way and may be sent again.
        case shelved
        /// What a person paused is wanted again.
        case unpaused(now: Date)
        /// By a person: whoever holds it, it goes on.
        case resumed(now: Date)
        /// By a person: it is tried now, also where it had failed.
        case retried(now: Date)
        /// The app chose a beginning, or takes its choice back.
        case scheduled(for: Date?, now: Date)
        case cancelled(message: String?, now: Date)
        /// Its resume data will name its part by this.
        case cancelledKeepingPart(token: String, now: Date)
        /// Resume data was made of its part; or there was nothing to make it of.
        case resumeDataMade(hasPart: Bool, now: Date)
        /// Another transfer goes on with its part.
        case partTaken
        // What the agent does and hears.
        case began
        /// Its attempt was stopped, and its part is durable.
        case stopped
        /// Nobody could try it before: all patience with it counts from now.
        case countedAnew(now: Date)
        /// More of it is here than ever was.
        case progressed(now: Date)
        case waits(until: Date, Reason)
        /// Every byte is here, and every digest is right.
        case proven
        /// What was proven is not there any more.
        case disproven(now: Date)
        case ended(Outcome, Reason?, now: Date)
        /// A new agent finds what an earlier one had under way.
        case agentDied(now: Date)
        /// Nobody wants any more what is kept of it.
        case collected(now: Date)
    }

    /// What else an event asks for.
    package enum Command: Equatable, Sendable {
        /// The app hears of its end.
        case tell
        /// Its end will be told anew.
        case forgetTelling
        /// Its part, or its file in the spool.
        case removeFiles
        /// The copy of what was to be sent.
        case removeBody
        /// What was counted against the server counts no more.
        case countAnew
        /// What opened the server's door is of no use any more: an upload is there, or nobody comes back to it.
        case forgetSecrets
    }

    /// What an event's meaning depends on besides.
    package struct Facts: Equatable, Sendable {
        package var isUpload: Bool
        /// May be sent a second time, or its protocol knows what the server has: see ``TransferRequest/isIdempotent``.
        package var mayBeRepeated: Bool
        /// Stopping it half-way does no harm: its server can be asked what it has.
        package var mayBeCut: Bool
        package var hasBody: Bool
        package var hasResumablePart: Bool
        /// An answer came, whatever its status.
        package var hasAnswer: Bool
        /// A name for its part that nobody else has.
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
